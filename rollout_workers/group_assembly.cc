#include "rollout_workers/group_assembly.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "rollout_workers/wire.h"

namespace warpsmith {

GroupAssembly::GroupAssembly(v1::GenerateGroupsRequest request,
                             const std::vector<absl::StatusOr<std::vector<int32_t>>>& prompts)
    : request_(std::move(request)), groups_(request_.tasks_size()), num_bytes_(request_.ByteSizeLong()) {
  WS_CHECK(static_cast<int>(prompts.size()) == request_.tasks_size()) << prompts.size() << " prompts";
  for (int task_index = 0; task_index < request_.tasks_size(); ++task_index) {
    Group& group = groups_[task_index];
    group.response = std::make_shared<v1::GenerateGroupsResponse>();
    group.decoded.resize(request_.num_samples());
    group.graded.resize(request_.num_samples());
    v1::TransitionGroup* transitions = group.response->mutable_group();
    transitions->set_task_index(task_index);
    *transitions->mutable_task() = request_.tasks(task_index);
    for (int s = 0; s < request_.num_samples(); ++s) transitions->add_transitions()->set_sample_index(s);
    if (prompts[task_index].ok()) {
      group.prompt_token_ids = *prompts[task_index];
    } else {
      AddInvalidGroup(task_index, prompts[task_index].status());
    }
  }
}

void GroupAssembly::AddInvalidGroup(int task_index, const absl::Status& reason) {
  Group& group = groups_[task_index];
  for (v1::Transition& transition : *group.response->mutable_group()->mutable_transitions()) {
    transition.set_policy_version(request_.policy_version());
    transition.mutable_grade()->set_task_id(request_.tasks(task_index).id());
    transition.mutable_grade()->set_verdict(v1::VERDICT_INVALID_TASK);
    transition.mutable_grade()->set_verdict_reason(Escape(std::string(reason.message()), 1024));
  }
  group.decoded.assign(group.decoded.size(), true);
  group.graded = group.decoded;
  completed_.push_back(group.response);
}

void GroupAssembly::Adopt(const GroupAssembly& other) {
  std::map<std::string, const Group*> theirs;  // by the bytes of the task
  for (const Group& group : other.groups_)
    theirs[group.response->group().task().SerializeAsString()] = &group;
  for (int task_index = 0; task_index < request_.tasks_size(); ++task_index) {
    const auto found = theirs.find(request_.tasks(task_index).SerializeAsString());
    const bool has_prompt = !groups_[task_index].prompt_token_ids.empty();
    if (found != theirs.end() && has_prompt) AdoptGroup(*found->second, task_index);
  }
}

void GroupAssembly::AdoptGroup(const Group& theirs, int task_index) {
  Group& group = groups_[task_index];
  group.first_prefill = theirs.first_prefill;
  group.last_token = theirs.last_token;
  for (int s = 0; s < request_.num_samples(); ++s) {
    if (!theirs.decoded[s]) continue;
    v1::Transition* const transition = group.response->mutable_group()->mutable_transitions(s);
    *transition = theirs.response->group().transitions(s);
    const v1::Grade grade = transition->grade();
    transition->clear_grade();
    num_bytes_ += static_cast<int64_t>(transition->ByteSizeLong());
    group.decoded[s] = true;
    SharedGrade& shared = Share(task_index, s);
    if (!theirs.graded[s] || grade.verdict() == v1::VERDICT_UNSCORABLE) continue;
    shared.graded = true;
    shared.grade = grade;
    shared.request.Clear();
    GiveGrade(task_index, s, grade, group.last_token);
  }
}

GenerationJob GroupAssembly::MissingSamples() const {
  GenerationJob job;
  job.sampling = SamplingFromProto(request_.sampling());
  job.policy_version = request_.policy_version();
  for (int task_index = 0; task_index < request_.tasks_size(); ++task_index) {
    GenerationGroup wanted{.task_index = task_index,
                           .prompt_token_ids = groups_[task_index].prompt_token_ids};
    for (int s = 0; s < request_.num_samples(); ++s) {
      if (groups_[task_index].decoded[s]) continue;
      wanted.samples.push_back(
          {.sample_index = s, .seed = SampleSeed(request_.seed(), request_.tasks(task_index).id(), s)});
    }
    if (!wanted.samples.empty()) job.groups.push_back(std::move(wanted));
  }
  return job;
}

std::vector<v1::GradeRequest> GroupAssembly::MissingGrades() const {
  std::vector<v1::GradeRequest> missing;
  for (const auto& [id, shared] : grades_) {
    if (!shared.graded) missing.push_back(shared.request);
  }
  return missing;
}

bool GroupAssembly::HasUnscorable() const {
  return std::any_of(completed_.begin(), completed_.end(), [](const auto& response) {
    const auto& transitions = response->group().transitions();
    return std::any_of(transitions.begin(), transitions.end(), [](const v1::Transition& transition) {
      return transition.grade().verdict() == v1::VERDICT_UNSCORABLE;
    });
  });
}

std::optional<v1::GradeRequest> GroupAssembly::AddSample(const FinishedSample& sample,
                                                         const std::string& answer) {
  Group& group = groups_.at(sample.task_index);
  if (group.decoded.at(sample.sample_index)) return std::nullopt;
  group.decoded[sample.sample_index] = true;
  group.first_prefill = std::min(group.first_prefill, sample.started);
  group.last_token = std::max(group.last_token, sample.finished);
  v1::Transition* transition = group.response->mutable_group()->mutable_transitions(sample.sample_index);
  FillTransition(sample, group.prompt_token_ids, answer, transition);
  num_bytes_ += static_cast<int64_t>(transition->ByteSizeLong());
  ++num_samples_decoded_;

  const SharedGrade& shared = Share(sample.task_index, sample.sample_index);
  if (shared.sample_indices.size() == 1) return shared.request;
  ++num_grades_shared_;
  if (shared.graded) GiveGrade(sample.task_index, sample.sample_index, shared.grade, sample.finished);
  return std::nullopt;
}

// The grade of a decoded sample's answer, made at its first sample.
GroupAssembly::SharedGrade& GroupAssembly::Share(int task_index, int sample_index) {
  v1::GradeRequest request =
      GradeRequestFor(task_index, groups_[task_index].response->group().transitions(sample_index).answer());
  SharedGrade& shared = grades_[request.request_id()];
  shared.sample_indices.push_back(sample_index);
  if (shared.sample_indices.size() == 1) {
    num_bytes_ += static_cast<int64_t>(request.ByteSizeLong());
    shared.request = std::move(request);
    shared.task_index = task_index;
  }
  return shared;
}

void GroupAssembly::AddGrade(const std::string& grade_request_id, const v1::Grade& grade, absl::Time now) {
  const auto found = grades_.find(grade_request_id);
  if (found == grades_.end() || found->second.graded) return;
  SharedGrade& shared = found->second;
  shared.graded = true;
  shared.grade = grade;
  shared.request.Clear();  // only its answer to a broken connection needed it
  for (const int sample_index : shared.sample_indices) GiveGrade(shared.task_index, sample_index, grade, now);
}

void GroupAssembly::GiveGrade(int task_index, int sample_index, const v1::Grade& grade, absl::Time now) {
  Group& group = groups_[task_index];
  v1::TransitionGroup* transitions = group.response->mutable_group();
  *transitions->mutable_transitions(sample_index)->mutable_grade() = grade;
  group.graded[sample_index] = true;
  num_bytes_ += static_cast<int64_t>(grade.ByteSizeLong());
  if (++group.num_graded < request_.num_samples()) return;
  transitions->set_decode_seconds(absl::ToDoubleSeconds(group.last_token - group.first_prefill));
  transitions->set_grade_tail_seconds(
      absl::ToDoubleSeconds(std::max(now - group.last_token, absl::ZeroDuration())));
  completed_.push_back(group.response);
}

// The id is a hash of request, task and answer: the same after a reconnection, so that the reward service
// does not grade twice what it has graded, and one for all equal answers to a task.
v1::GradeRequest GroupAssembly::GradeRequestFor(int task_index, const std::string& answer) const {
  v1::GradeRequest request;
  *request.mutable_task() = request_.tasks(task_index);
  request.mutable_candidate()->set_language(request_.tasks(task_index).language());
  request.mutable_candidate()->set_answer(answer);
  request.set_formula(request_.formula());
  Sha256 digest;
  const std::string& task_id = request_.tasks(task_index).id();
  digest.Update(
      absl::StrCat(request_.request_id().size(), ":", request_.request_id(), task_id.size(), ":", task_id));
  digest.Update(answer);
  request.set_request_id(digest.HexDigest());
  return request;
}

}  // namespace warpsmith
