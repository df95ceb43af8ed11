#include "trainer/workers/wire.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "proto/device_names.h"
#include "proto/language_names.h"

namespace warpsmith {
namespace {

Feedback FeedbackFromWire(const v1::Feedback& wire) {
  return {.finding = wire.finding(), .evidence = wire.evidence(), .advice = wire.advice()};
}

Grade GradeFromWire(const v1::Grade& wire) {
  Grade grade;
  const bool is_known = wire.verdict() > v1::VERDICT_UNSPECIFIED && wire.verdict() <= v1::VERDICT_UNSCORABLE;
  grade.verdict = is_known ? static_cast<Verdict>(wire.verdict()) : Verdict::kUnscorable;
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

// Log-probs are sums of float32: for logits up to 1,000 a certain token may come out this much above 0.
constexpr float kLogProbMax = 1e-4f;

using TokenIds = google::protobuf::RepeatedField<int32_t>;

// Names the first token id that the model has no row for; empty: none.
std::string ForeignToken(const char* part, const TokenIds& ids, const TransitionLimits& limits) {
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < limits.vocab_size) continue;
    return absl::StrCat(part, " token id ", ids[i], " at position ", i, " of a vocabulary of ",
                        limits.vocab_size);
  }
  return "";
}

std::string LengthFault(const v1::Transition& wire, const GenerateRequest& request,
                        const TransitionLimits& limits) {
  const int64_t num_prompt_tokens = wire.prompt_token_ids_size();
  const int64_t num_answer_tokens = wire.answer_token_ids_size();
  // A task that makes no prompt comes back as INVALID_TASK, which says why.
  if (num_prompt_tokens == 0 && wire.grade().verdict() != v1::VERDICT_INVALID_TASK) return "no prompt";
  if (num_answer_tokens > request.sampling.answer_tokens_max) {
    return absl::StrCat(num_answer_tokens, " answer tokens, at most ", request.sampling.answer_tokens_max,
                        " were asked for");
  }
  if (num_prompt_tokens + num_answer_tokens > limits.positions_max) {
    return absl::StrCat(num_prompt_tokens + num_answer_tokens, " tokens in all, the model has ",
                        limits.positions_max, " positions");
  }
  if (wire.log_probs_size() != num_answer_tokens) {
    return absl::StrCat(wire.log_probs_size(), " log-probs for ", num_answer_tokens, " answer tokens");
  }
  return "";
}

std::string LogProbFault(const v1::Transition& wire) {
  for (int i = 0; i < wire.log_probs_size(); ++i) {
    const float log_prob = wire.log_probs(i);
    if (std::isfinite(log_prob) && log_prob <= kLogProbMax) continue;
    return absl::StrCat("log-prob ", log_prob, " at answer token ", i);
  }
  return "";
}

// Why the update cannot take the transition; empty: it can.
std::string FaultOf(const v1::Transition& wire, const GenerateRequest& request,
                    const TransitionLimits& limits) {
  std::string fault = LengthFault(wire, request, limits);
  if (fault.empty()) fault = ForeignToken("prompt", wire.prompt_token_ids(), limits);
  if (fault.empty()) fault = ForeignToken("answer", wire.answer_token_ids(), limits);
  if (fault.empty()) fault = LogProbFault(wire);
  return fault.empty() ? "" : absl::StrCat("sample ", wire.sample_index(), ": ", fault);
}

// What tells whether the worker answered what was asked: an error here is the whole group's.
absl::Status CheckGroup(const v1::TransitionGroup& wire, const Task& task, const GenerateRequest& request) {
  if (wire.task().id() != task.id) {
    return absl::InternalError(absl::StrCat("the group is of task \"", Escape(wire.task().id(), 128), "\""));
  }
  if (wire.transitions_size() != request.num_samples) {
    return absl::InternalError(
        absl::StrCat("the group has ", wire.transitions_size(), " transitions, not ", request.num_samples));
  }
  std::vector<bool> is_there(request.num_samples);
  for (const v1::Transition& transition : wire.transitions()) {
    const int index = transition.sample_index();
    if (index < 0 || index >= request.num_samples) {
      return absl::InternalError(absl::StrCat("sample index ", index, " of ", request.num_samples));
    }
    if (is_there[index]) return absl::InternalError(absl::StrCat("sample ", index, " is there twice"));
    is_there[index] = true;
    if (transition.policy_version() != request.policy_version) {
      return absl::InternalError(
          absl::StrCat("sample ", index, " was decoded by policy version ", transition.policy_version(),
                       ", not ", request.policy_version,
                       ", which was asked for: give the worker to this trainer alone, and "
                       "start one of this build"));
    }
    if (transition.token_policy_versions_size() > 0) {  // only where somebody committed weights to go on with
      return absl::InternalError(absl::StrCat("sample ", index, " has tokens of other policy versions than ",
                                              request.policy_version,
                                              ": somebody else has committed weights with "
                                              "SAMPLES_UNDER_WAY_KEEP or _RECOMPUTE; give the worker to this "
                                              "trainer alone, or have it commit with SAMPLES_UNDER_WAY_END"));
    }
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

// In place of a transition that has `fault`.
Transition Dropped(const v1::Transition& wire, const std::string& fault) {
  v1::Transition rest;
  rest.set_sample_index(wire.sample_index());
  rest.set_seed(wire.seed());
  rest.set_policy_version(wire.policy_version());
  rest.mutable_grade()->set_verdict(v1::VERDICT_UNSCORABLE);
  rest.mutable_grade()->set_verdict_reason(absl::StrCat("malformed: ", fault));
  Transition transition = TransitionFromWire(rest);
  transition.malformed = fault;
  return transition;
}

}  // namespace

v1::Task TaskToWire(const Task& task) {
  v1::Task wire;
  wire.set_id(task.id);
  wire.set_skill(static_cast<v1::Skill>(task.skill));
  wire.set_family(task.family);
  wire.set_reference_source(task.reference_source);
  wire.set_language(LanguageOfName(task.language));
  wire.set_device(DeviceOfName(task.device));
  for (const std::string& library : task.allowed_libraries) wire.add_allowed_libraries(library);
  if (task.skill != Skill::kOptimise) return wire;
  wire.set_previous_source(task.previous_source);
  wire.set_previous_reward(task.previous_reward);
  wire.mutable_feedback()->set_finding(task.feedback.finding);
  wire.mutable_feedback()->set_evidence(task.feedback.evidence);
  wire.mutable_feedback()->set_advice(static_cast<v1::Advice>(task.feedback.advice));
  return wire;
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

absl::StatusOr<TransitionGroup> GroupFromWire(const v1::TransitionGroup& wire, const Task& task,
                                              const GenerateRequest& request,
                                              const TransitionLimits& limits) {
  RETURN_IF_ERROR(CheckGroup(wire, task, request));
  TransitionGroup group{.task = task,
                        .transitions = std::vector<Transition>(request.num_samples),
                        .decode_seconds = wire.decode_seconds(),
                        .grade_tail_seconds = wire.grade_tail_seconds()};
  for (const v1::Transition& transition : wire.transitions()) {
    const std::string fault = FaultOf(transition, request, limits);
    group.transitions[transition.sample_index()] =
        fault.empty() ? TransitionFromWire(transition) : Dropped(transition, fault);
  }
  return group;
}

WorkerIdentity IdentityFromWire(const std::string& address, const v1::GetStatusResponse& wire) {
  return {.address = address,
          .layout_sha256 = wire.layout_sha256(),
          .prompts_sha256 = wire.prompts_sha256(),
          .formula = wire.formula(),
          .weights_dtype = wire.weights_dtype(),
          .model_fields = {wire.model_fields().begin(), wire.model_fields().end()},
          .stop_token_ids = {wire.stop_token_ids().begin(), wire.stop_token_ids().end()},
          .context_tokens_max = wire.context_tokens_max(),
          .cuda_memory_host = wire.cuda_memory_host()};
}

v1::WeightsManifest ManifestToWire(const PublishedWeights& weights) {
  v1::WeightsManifest wire;
  wire.set_policy_version(weights.policy_version);
  wire.set_transport(weights.transport);
  wire.set_path(weights.path);
  wire.set_dtype(weights.dtype);
  wire.set_layout_sha256(weights.layout_sha256);
  wire.mutable_model_fields()->insert(weights.model_fields.begin(), weights.model_fields.end());
  for (const PublishedBuffer& buffer : weights.buffers) {
    v1::WeightsBuffer& entry = *wire.add_buffers();
    entry.set_name(buffer.name);
    entry.set_offset_bytes(buffer.offset_bytes);
    entry.set_length_bytes(buffer.length_bytes);
    entry.set_sha256(buffer.sha256);
    entry.set_checksum(buffer.checksum);
  }
  return wire;
}

}  // namespace warpsmith
