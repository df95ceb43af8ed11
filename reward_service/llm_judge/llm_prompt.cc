#include "reward_service/llm_judge/llm_prompt.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "proto/advice_words.h"
#include "reward_service/program/candidate_language.h"
#include "reward_service/program/neutral_source.h"
#include "reward_service/scoring/credit.h"
#include "reward_service/scoring/kernel_facts.h"

namespace warpsmith {
namespace {

constexpr std::string_view kSystemMark = "[system]\n", kUserMark = "\n[user]\n";
constexpr std::string_view kOpen = "{{", kClose = "}}";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

using Slots = std::map<std::string, std::string, std::less<>>;

// Fills slots; what fills one is not searched for others.
std::string Fill(std::string_view text, const Slots& slots) {
  std::string out;
  while (true) {
    const size_t open = text.find(kOpen);
    out.append(text.substr(0, open));
    if (open == std::string_view::npos) return out;
    const size_t close = text.find(kClose, open);
    out.append(slots.at(std::string(text.substr(open + kOpen.size(), close - open - kOpen.size()))));
    text.remove_prefix(close + kClose.size());
  }
}

absl::Status CheckSlots(std::string_view text, const char* part, const std::set<std::string>& wanted) {
  std::set<std::string> missing = wanted;
  for (size_t open = text.find(kOpen); open != std::string_view::npos; open = text.find(kOpen, open + 1)) {
    const size_t close = text.find(kClose, open);
    const std::string name(
        text.substr(open + kOpen.size(), std::min(close, text.size()) - open - kOpen.size()));
    if (close == std::string_view::npos || wanted.count(name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the prompt's part ", part, " has no slot {{", Escape(name, 64), "}}"));
    }
    missing.erase(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the prompt's part ", part, " lacks the slot {{", *missing.begin(), "}}"));
}

std::string Cut(std::string text) {
  if (text.size() <= LlmPrompt::kProgramBytesMax) return text;
  const size_t num_left_out = text.size() - LlmPrompt::kProgramBytesMax;
  text.resize(LlmPrompt::kProgramBytesMax);
  return absl::StrCat(text, "\n[", num_left_out, " more bytes are not shown]");
}

std::string TaskText(const v1::Task& task) {
  if (task.skill() != v1::SKILL_OPTIMISE) return "It was to be written from REFERENCE.";
  return absl::StrCat(
      "It was to be made from PREVIOUS, by this advice: ", View(AdviceWords(task.feedback().advice())), ".");
}

std::string OriginText(const v1::Profile& profile) {
  if (profile.num_samples() < kProfileSamplesMin) {
    return absl::StrFormat("%d samples, too few to tell", profile.num_samples());
  }
  return absl::StrFormat("own code %.0f %%, libc and libm %.0f %%, kernel %.0f %% of %d samples",
                         100 * profile.own_code_share(), 100 * profile.libc_share(),
                         100 * profile.kernel_share(), profile.num_samples());
}

std::string CpuText(const v1::Profile& profile) {
  return absl::StrFormat("\ntime by origin: %s\nwidest vectors: %d bits; threads: %d", OriginText(profile),
                         profile.vector_bits(), profile.num_threads());
}

// Of the machine code of all kernels. Their names are the candidate's words, and left out.
std::string GpuText(const KernelFacts& kernels) {
  std::string text = "\non a GPU; kernels of known machine code: ";
  if (kernels.num_kernels == 0) return text + "none";
  absl::StrAppendFormat(
      &text, "%d, of which %d load one number at a time; widest load: %d bits; registers of a thread: %d",
      kernels.num_kernels, kernels.num_narrow_kernels, kernels.load_bits_max, kernels.registers);
  absl::StrAppendFormat(&text,
                        "; spilled: %d B of stack, %d accesses; shared memory: %s; shuffles: %s; "
                        "tensor cores: %s; atomics without shuffles: %d",
                        kernels.stack_bytes, kernels.num_local_accesses, kernels.shares_memory ? "yes" : "no",
                        kernels.shuffles ? "yes" : "no", kernels.uses_tensor_cores ? "yes" : "no",
                        kernels.num_lone_atomics);
  return text;
}

void AppendCeiling(const char* name, const v1::RubricScore& row, std::string* text) {
  absl::StrAppendFormat(text, "\nceiling of %s: %d (%s)", name, row.score(), row.condition());
}

}  // namespace

std::string LlmEvidence(const v1::Task& task, const v1::Grade& grade) {
  const v1::Timing& timing = grade.timing();
  const v1::Profile& profile = grade.profile();
  std::string text = absl::StrFormat("verdict: every output right in %d draws of inputs\nhack evidence: ",
                                     grade.correctness().num_draws());
  absl::StrAppend(&text, grade.hack_family().empty() ? "none found" : grade.hack_family());
  absl::StrAppendFormat(&text, "\nspeed-up over eager PyTorch: %.3f, 95 %% interval [%.3f, %.3f]%s",
                        timing.speedup(), timing.speedup_low(), timing.speedup_high(),
                        timing.distinguishable() ? "" : ", not distinguishable from 1");
  const std::optional<KernelFacts> kernels = KernelFactsOf(grade);
  absl::StrAppend(&text, kernels ? GpuText(*kernels) : CpuText(profile));
  absl::StrAppendFormat(&text, "; memory: %.1f of %.1f GB/s", profile.gigabytes_per_second(),
                        profile.gigabytes_per_second_ceiling());
  absl::StrAppendFormat(&text, "\nbound by: %s", profile.bound().empty() ? "unknown" : profile.bound());
  absl::StrAppendFormat(&text, "\nlibraries that may do the work: %d named", task.allowed_libraries_size());
  AppendCeiling("anti_hacking", grade.rubric().anti_hacking(), &text);
  AppendCeiling("engineering", grade.rubric().engineering(), &text);
  AppendCeiling("operator_coverage", grade.rubric().operator_coverage(), &text);
  AppendCeiling("skill_compliance", grade.rubric().skill_compliance(), &text);
  return text;
}

absl::StatusOr<LlmPrompt> LlmPrompt::Parse(std::string text) {
  const size_t user = text.find(kUserMark);
  if (text.rfind(kSystemMark, 0) != 0 || user == std::string::npos) {
    return absl::InvalidArgumentError("a prompt has a line [system] at its head and a line [user] after it");
  }
  LlmPrompt prompt;
  prompt.sha256_ = Sha256Hex(text);
  prompt.system_ = text.substr(kSystemMark.size(), user - kSystemMark.size());
  prompt.user_ = text.substr(user + kUserMark.size());
  RETURN_IF_ERROR(CheckSlots(prompt.system_, "[system]", {"nonce"}));
  RETURN_IF_ERROR(
      CheckSlots(prompt.user_, "[user]",
                 {"nonce", "language", "task", "evidence", "reference", "previous", "candidate"}));
  return prompt;
}

LlmMessages LlmPrompt::Render(const LlmQuestion& question, std::string_view nonce) const {
  const v1::Task& task = *question.task;
  const CandidateLanguage& language = LanguageOf(question.language);
  NeutralNames names(PythonWords(task.reference_source()));
  const bool improves = task.skill() == v1::SKILL_OPTIMISE;
  Slots slots;
  slots["nonce"] = std::string(nonce);
  slots["language"] = std::string(language.description);
  slots["task"] = TaskText(task);
  slots["evidence"] = LlmEvidence(task, *question.grade);
  slots["reference"] = Cut(NeutralPython(task.reference_source(), &names));
  slots["candidate"] = Cut(language.neutralise(question.source, &names));
  slots["previous"] = improves ? Cut(language.neutralise(task.previous_source(), &names)) : "(none)";
  return {Fill(system_, slots), Fill(user_, slots)};
}

}  // namespace warpsmith
