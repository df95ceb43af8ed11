#include "trainer/wire.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "google/protobuf/util/json_util.h"

namespace warpsmith {
namespace {

constexpr std::pair<const char*, v1::CandidateLanguage> kLanguages[] = {
    {"cpp", v1::CANDIDATE_LANGUAGE_CPP},
    {"kernelbench_python", v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON},
    {"cuda", v1::CANDIDATE_LANGUAGE_CUDA},
};

v1::CandidateLanguage LanguageToWire(const std::string& language) {
  for (const auto& [name, value] : kLanguages) {
    if (language == name) return value;
  }
  return v1::CANDIDATE_LANGUAGE_UNSPECIFIED;
}

std::string LanguageFromWire(v1::CandidateLanguage language) {
  for (const auto& [name, value] : kLanguages) {
    if (language == value) return name;
  }
  return "";
}

Feedback FeedbackFromWire(const v1::Feedback& wire) {
  return {.finding = wire.finding(), .evidence = wire.evidence(), .advice = wire.advice()};
}

// "fuse passes" of ADVICE_FUSE_PASSES.
std::string TextOf(v1::Advice advice) {
  const std::string name = v1::Advice_Name(advice);
  return absl::StrReplaceAll(absl::AsciiStrToLower(absl::StripPrefix(name, "ADVICE_")), {{"_", " "}});
}

Grade GradeFromWire(const v1::Grade& wire) {
  Grade grade;
  grade.verdict = static_cast<Verdict>(wire.verdict());
  const bool counts = grade.verdict != Verdict::kUnscorable && grade.verdict != Verdict::kInvalidTask;
  if (counts && wire.reward().has_value() && std::isfinite(wire.reward().value())) {
    grade.reward = wire.reward().value();
  }
  grade.compiled = wire.compile().succeeded();
  grade.speedup = wire.timing().speedup();
  grade.speedup_low = wire.timing().speedup_low();
  grade.source = wire.source();
  grade.source_sha256 = wire.source_sha256();
  grade.feedback = FeedbackFromWire(wire.feedback());
  return grade;
}

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  return status.ok() ? json : "{}";
}

absl::Status CheckTransition(const v1::Transition& wire, const GenerateRequest& request) {
  const std::string name = absl::StrCat("sample ", wire.sample_index());
  if (wire.policy_version() != request.policy_version) {
    return absl::InternalError(absl::StrCat(name, " was decoded by policy version ", wire.policy_version(),
                                            ", not ", request.policy_version));
  }
  // A task that makes no prompt comes back as INVALID_TASK, which says why.
  if (wire.prompt_token_ids().empty() && wire.grade().verdict() != v1::VERDICT_INVALID_TASK) {
    return absl::InternalError(absl::StrCat(name, " has no prompt"));
  }
  if (wire.log_probs_size() != wire.answer_token_ids_size()) {
    return absl::InternalError(absl::StrCat(name, " has ", wire.log_probs_size(), " log-probs for ",
                                            wire.answer_token_ids_size(), " answer tokens"));
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(wire.log_probs().begin(), wire.log_probs().end(), finite)) {
    return absl::InternalError(absl::StrCat(name, " has a log-prob that is not finite"));
  }
  return absl::OkStatus();
}

Transition TransitionFromWire(const v1::Transition& wire) {
  Transition transition;
  transition.sample_index = wire.sample_index();
  transition.prompt_token_ids.assign(wire.prompt_token_ids().begin(), wire.prompt_token_ids().end());
  transition.answer_token_ids.assign(wire.answer_token_ids().begin(), wire.answer_token_ids().end());
  transition.log_probs.assign(wire.log_probs().begin(), wire.log_probs().end());
  transition.seed = wire.seed();
  transition.policy_version = wire.policy_version();
  transition.truncated = wire.finish_reason() == v1::FINISH_REASON_LENGTH;
  transition.grade = GradeFromWire(wire.grade());
  transition.json = JsonOf(wire);
  return transition;
}

}  // namespace

int AdviceFromText(const std::string& text) {
  for (int value = v1::Advice_MIN; value <= v1::Advice_MAX; ++value) {
    // Sentences say "the temporary"; names leave the article out.
    if (value != 0 && TextOf(static_cast<v1::Advice>(value)) == absl::StrReplaceAll(text, {{" the ", " "}})) {
      return value;
    }
  }
  return 0;
}

std::string AdviceTexts() {
  std::vector<std::string> texts;
  for (int value = v1::Advice_MIN + 1; value <= v1::Advice_MAX; ++value) {
    texts.push_back(TextOf(static_cast<v1::Advice>(value)));
  }
  return absl::StrJoin(texts, ", ");
}

v1::Task TaskToWire(const Task& task) {
  v1::Task wire;
  wire.set_id(task.id);
  wire.set_skill(static_cast<v1::Skill>(task.skill));
  wire.set_family(task.family);
  wire.set_reference_source(task.reference_source);
  wire.set_language(LanguageToWire(task.language));
  for (const std::string& library : task.allowed_libraries) wire.add_allowed_libraries(library);
  if (task.skill != Skill::kOptimise) return wire;
  wire.set_previous_source(task.previous_source);
  wire.set_previous_reward(task.previous_reward);
  wire.mutable_feedback()->set_finding(task.feedback.finding);
  wire.mutable_feedback()->set_evidence(task.feedback.evidence);
  wire.mutable_feedback()->set_advice(static_cast<v1::Advice>(task.feedback.advice));
  return wire;
}

Task TaskFromWire(const v1::Task& wire) {
  return {.id = wire.id(),
          .skill = static_cast<Skill>(wire.skill()),
          .family = wire.family(),
          .reference_source = wire.reference_source(),
          .language = LanguageFromWire(wire.language()),
          .allowed_libraries = {wire.allowed_libraries().begin(), wire.allowed_libraries().end()},
          .previous_source = wire.previous_source(),
          .feedback = FeedbackFromWire(wire.feedback()),
          .previous_reward = wire.previous_reward()};
}

v1::GenerateGroupsRequest RequestToWire(const GenerateRequest& request, const std::vector<int>& indices) {
  v1::GenerateGroupsRequest wire;
  for (const int index : indices) *wire.add_tasks() = TaskToWire(request.tasks[index]);
  wire.set_request_id(request.id);
  wire.set_num_samples(request.num_samples);
  wire.mutable_sampling()->set_temperature(request.sampling.temperature);
  wire.mutable_sampling()->set_top_p(request.sampling.top_p);
  wire.mutable_sampling()->set_top_k(request.sampling.top_k);
  wire.mutable_sampling()->set_answer_tokens_max(request.sampling.answer_tokens_max);
  wire.set_seed(request.seed);
  wire.set_policy_version(request.policy_version);
  wire.set_formula(request.formula);
  return wire;
}

absl::StatusOr<TransitionGroup> GroupFromWire(const v1::TransitionGroup& wire,
                                              const GenerateRequest& request) {
  if (wire.transitions_size() != request.num_samples) {
    return absl::InternalError(
        absl::StrCat("a group has ", wire.transitions_size(), " transitions, not ", request.num_samples));
  }
  TransitionGroup group{.task = TaskFromWire(wire.task()),
                        .decode_seconds = wire.decode_seconds(),
                        .grade_tail_seconds = wire.grade_tail_seconds()};
  for (const v1::Transition& transition : wire.transitions()) {
    RETURN_IF_ERROR(CheckTransition(transition, request));
    group.transitions.push_back(TransitionFromWire(transition));
  }
  std::sort(group.transitions.begin(), group.transitions.end(),
            [](const Transition& a, const Transition& b) { return a.sample_index < b.sample_index; });
  for (int i = 0; i < request.num_samples; ++i) {
    if (group.transitions[i].sample_index == i) continue;
    return absl::InternalError(absl::StrCat("a group lacks sample ", i));
  }
  return group;
}

v1::WeightsManifest ManifestToWire(const PublishedWeights& weights) {
  v1::WeightsManifest wire;
  wire.set_policy_version(weights.policy_version);
  wire.set_path(weights.path);
  wire.set_dtype(weights.dtype);
  wire.set_layout_sha256(weights.layout_sha256);
  for (const PublishedBuffer& buffer : weights.buffers) {
    v1::WeightsBuffer& entry = *wire.add_buffers();
    entry.set_name(buffer.name);
    entry.set_offset_bytes(buffer.offset_bytes);
    entry.set_length_bytes(buffer.length_bytes);
    entry.set_sha256(buffer.sha256);
  }
  return wire;
}

}  // namespace warpsmith
