#include "cli/grade_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "proto/advice_words.h"

namespace warpsmith {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// VERDICT_WRONG_SHAPE -> wrong shape.
std::string Words(const std::string& enum_name, const std::string& prefix) {
  std::string words = absl::AsciiStrToLower(absl::StripPrefix(enum_name, prefix));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

void AddCompile(const v1::Compile& compile, Rows* rows) {
  if (!compile.attempted()) return;
  rows->emplace_back("compile", absl::StrCat(compile.succeeded() ? "succeeded" : "failed", ", ",
                                             compile.compiler(), compile.cached() ? ", cached" : ""));
  const std::vector<std::string> lines = absl::StrSplit(compile.diagnostics(), '\n', absl::SkipWhitespace());
  for (const std::string& line : lines) rows->emplace_back("", Escape(line));
}

// "scalar (sm_90a): 10 registers, 18 instructions, 32-bit loads"; what a kernel has none of is left out.
std::string KernelText(const v1::KernelBinary& kernel) {
  std::string text = absl::StrCat(Escape(kernel.name()), " (", kernel.architecture(),
                                  "): ", kernel.registers(), " registers");
  const auto add = [&text](int number, const char* what) {
    if (number > 0) absl::StrAppend(&text, ", ", number, what);
  };
  add(kernel.stack_bytes(), " B of stack");
  add(kernel.static_shared_bytes(), " B of shared memory");
  if (kernel.num_instructions() == 0) return text + ", instructions unknown";
  add(kernel.num_instructions(), " instructions");
  add(kernel.load_bits(), "-bit loads");
  add(kernel.num_local_accesses(), " local accesses");
  add(kernel.num_tensor_core_instructions(), " on tensor cores");
  add(kernel.num_barriers(), " barriers");
  add(kernel.num_atomics(), " atomics");
  add(kernel.num_shuffles(), " shuffles");
  add(kernel.num_async_copies(), " async copies");
  return text;
}

void AddKernels(const v1::Compile& compile, Rows* rows) {
  for (const v1::KernelBinary& kernel : compile.kernels()) {
    rows->emplace_back(&kernel == &compile.kernels(0) ? "kernels" : "", KernelText(kernel));
  }
}

// "4096x1x1"
std::string ExtentsText(const google::protobuf::RepeatedField<int32_t>& extents) {
  return extents.empty() ? "unknown" : absl::StrJoin(extents, "x");
}

// What one call launched, by the program's own word.
void AddLaunches(const v1::Profile& profile, Rows* rows) {
  for (const v1::KernelRun& kernel : profile.kernels()) {
    const bool is_first = &kernel == &profile.kernels(0);
    rows->emplace_back(
        is_first ? "launched" : "",
        absl::StrFormat(
            "%s: %.1f us in %d of %d launches, grid %s, block %s, %d registers, %d B of shared memory",
            Escape(kernel.name()), kernel.us(), kernel.num_launches(), profile.num_launches(),
            ExtentsText(kernel.grid()), ExtentsText(kernel.block()), kernel.registers(),
            kernel.shared_bytes()));
  }
}

void AddCorrectness(const v1::Correctness& correctness, Rows* rows) {
  if (correctness.num_draws() == 0) return;
  rows->emplace_back(
      "correctness",
      absl::StrFormat("%d draws, %d of %d elements wrong; largest error %.3g (relative %.3g), allowed %.3g",
                      correctness.num_draws(), correctness.num_wrong(), correctness.num_elements(),
                      correctness.max_absolute_error(), correctness.max_relative_error(),
                      correctness.absolute_tolerance()));
  if (!correctness.first_difference().empty()) rows->emplace_back("", Escape(correctness.first_difference()));
}

void AddTiming(const v1::Timing& timing, Rows* rows) {
  if (timing.candidate().num_calls() == 0) return;
  rows->emplace_back(
      "time",
      absl::StrFormat("%.1f us, reference %.1f us (median of %d calls in %d processes, %s)",
                      timing.candidate().median_us(), timing.reference().median_us(),
                      timing.candidate().num_calls(), timing.candidate().num_instances(), timing.quality()));
  rows->emplace_back(
      "speed-up",
      absl::StrFormat("%.3f [%.3f, %.3f]%s", timing.speedup(), timing.speedup_low(), timing.speedup_high(),
                      timing.distinguishable() ? "" : ", not distinguishable from 1"));
}

void AddCredit(const v1::Grade& grade, Rows* rows) {
  if (!grade.has_credit()) return;
  const v1::Credit& credit = grade.credit();
  rows->emplace_back("credit", absl::StrFormat("%.3f: %s", credit.speedup(), Escape(credit.condition())));
  if (credit.library_share() == 0) return;
  rows->emplace_back(
      "", absl::StrFormat("%.2f x %.3f of own speed + %.2f x %.3f of the reference's time saved",
                          1 - credit.library_share(), credit.own(), credit.library_share(), credit.saved()));
}

void AddProfile(const v1::Profile& profile, Rows* rows) {
  if (profile.num_samples() == 0) return;
  rows->emplace_back(
      "profile", absl::StrFormat("%.0f %% own code (%d samples), %d threads, %d-bit vectors, "
                                 "%.1f of %.1f GB/s, %s-bound",
                                 100 * profile.own_code_share(), profile.num_samples(), profile.num_threads(),
                                 profile.vector_bits(), profile.gigabytes_per_second(),
                                 profile.gigabytes_per_second_ceiling(), profile.bound()));
}

// "1965 to 1980 MHz"; one number where both are the same.
std::string ClockText(int mhz_min, int mhz_max) {
  return mhz_min == mhz_max ? absl::StrCat(mhz_max, " MHz") : absl::StrCat(mhz_min, " to ", mhz_max, " MHz");
}

void AddClocks(const v1::GpuClocks& clocks, Rows* rows) {
  std::string text =
      absl::StrCat("clock ", ClockText(clocks.sm_mhz_min(), clocks.sm_mhz_max()), ", of memory ",
                   ClockText(clocks.memory_mhz_min(), clocks.memory_mhz_max()));
  for (const std::string& reason : clocks.throttle_reasons()) absl::StrAppend(&text, ", ", Escape(reason));
  if (clocks.num_repeated_rounds() > 0) {
    absl::StrAppend(&text, "; rounds timed again: ", clocks.num_repeated_rounds());
  }
  rows->emplace_back("", std::move(text));
}

// What a GPU's grade has in place of samples.
void AddGpu(const v1::Grade& grade, Rows* rows) {
  if (!grade.environment().has_gpu()) return;
  const v1::GpuEnvironment& gpu = grade.environment().gpu();
  rows->emplace_back("gpu", absl::StrCat(Escape(gpu.name()), " (", Escape(gpu.architecture()), "), CUDA ",
                                         Escape(gpu.driver_version())));
  if (grade.timing().has_clocks()) AddClocks(grade.timing().clocks(), rows);
  const v1::Profile& profile = grade.profile();
  if (profile.gigabytes_per_second_ceiling() <= 0) return;
  rows->emplace_back("", absl::StrFormat("%.1f of %.1f GB/s, %s-bound", profile.gigabytes_per_second(),
                                         profile.gigabytes_per_second_ceiling(), profile.bound()));
}

void AddRubric(const v1::Rubric& rubric, Rows* rows) {
  if (rubric.total() == 0) return;
  rows->emplace_back("rubric", absl::StrCat(rubric.total(), " of 20, ", rubric.source()));
  const std::pair<const char*, const v1::RubricScore*> scores[] = {
      {"anti-hacking", &rubric.anti_hacking()},
      {"engineering", &rubric.engineering()},
      {"operator coverage", &rubric.operator_coverage()},
      {"skill compliance", &rubric.skill_compliance()}};
  for (const auto& [name, score] : scores) {
    rows->emplace_back("", absl::StrCat(score->score(), " ", name, ": ", Escape(score->reason())));
    if (score->llm_score() == 0) continue;
    rows->emplace_back("", absl::StrCat("  table ", score->table_score(), ", LLM judge ", score->llm_score(),
                                        ": ", Escape(score->llm_reason())));
  }
}

void AddReward(const v1::Reward& reward, Rows* rows) {
  const std::string value = reward.has_value() ? absl::StrFormat("%.4f", reward.value()) : "none";
  rows->emplace_back("reward", absl::StrCat(value, ", ", reward.formula()));
  const auto term_text = [](std::string* text, const v1::RewardTerm& term) {
    absl::StrAppend(text, absl::StrFormat("%s %.4g", term.name(), term.value()));
  };
  if (reward.terms_size() > 0) rows->emplace_back("", absl::StrJoin(reward.terms(), ", ", term_text));
}

void AddFeedback(const v1::Feedback& feedback, Rows* rows) {
  if (feedback.finding().empty()) return;
  rows->emplace_back("feedback", absl::StrCat(feedback.finding(), ": ", Escape(feedback.evidence())));
  if (feedback.advice() == v1::ADVICE_UNSPECIFIED) return;
  rows->emplace_back("", absl::StrCat("advice: ", AbslView(AdviceWords(feedback.advice()))));
}

void AddCost(const v1::Cost& cost, Rows* rows) {
  rows->emplace_back("seconds",
                     absl::StrFormat("%.2f in all: compile %.2f, oracle %.2f, verify %.2f, time %.2f, "
                                     "profile %.2f, waiting %.2f",
                                     cost.total_seconds(), cost.compile_seconds(), cost.oracle_seconds(),
                                     cost.verify_seconds(), cost.time_seconds(), cost.profile_seconds(),
                                     cost.queue_seconds() + cost.lane_wait_seconds()));
}

}  // namespace

std::string GradeText(const v1::Grade& grade) {
  Rows rows;
  rows.emplace_back("task", Escape(grade.task_id()));
  const std::string family = grade.hack_family().empty() ? "" : ", " + Escape(grade.hack_family());
  rows.emplace_back("verdict",
                    absl::AsciiStrToUpper(Words(v1::Verdict_Name(grade.verdict()), "VERDICT_")) + family);
  if (!grade.verdict_reason().empty()) rows.emplace_back("", Escape(grade.verdict_reason()));
  AddCompile(grade.compile(), &rows);
  AddKernels(grade.compile(), &rows);
  AddCorrectness(grade.correctness(), &rows);
  AddTiming(grade.timing(), &rows);
  AddCredit(grade, &rows);
  AddProfile(grade.profile(), &rows);
  AddGpu(grade, &rows);
  AddLaunches(grade.profile(), &rows);
  AddRubric(grade.rubric(), &rows);
  AddReward(grade.reward(), &rows);
  AddFeedback(grade.feedback(), &rows);
  AddCost(grade.cost(), &rows);
  std::string text;
  for (const auto& [name, value] : rows) absl::StrAppendFormat(&text, "%-12s %s\n", name, value);
  return text;
}

}  // namespace warpsmith
