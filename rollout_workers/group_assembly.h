// Collects the samples and grades of one request until its groups are complete. No threads, no clocks, no
// network.
#ifndef WARPSMITH_ROLLOUT_WORKERS_GROUP_ASSEMBLY_H_
#define WARPSMITH_ROLLOUT_WORKERS_GROUP_ASSEMBLY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rollout_workers/generation.h"
#include "warpsmith/v1/reward_service.pb.h"
#include "warpsmith/v1/rollout_service.pb.h"

namespace warpsmith {

// Identical answers to a task are graded once and share the Grade. What has been decoded or graded stays when
// decoding or grading is broken off, so that a request can be taken up again where it was left. Not
// thread-safe.
class GroupAssembly {
 public:
  // `prompts`: for each task its token ids, or why it has none; such a task's group is complete from the
  // start, its samples INVALID_TASK with that reason.
  GroupAssembly(v1::GenerateGroupsRequest request,
                const std::vector<absl::StatusOr<std::vector<int32_t>>>& prompts);

  // Takes over what `other` has of the same tasks: answers, and grades that are not UNSCORABLE. `other` must
  // have been made for the same weights and, its tasks aside, for the same request. To be called before
  // anything is added.
  void Adopt(const GroupAssembly& other);

  // The samples that have not been decoded yet, as a job without an id; no groups if there are none.
  GenerationJob MissingSamples() const;
  // The grades that have not come yet of answers that were decoded.
  std::vector<v1::GradeRequest> MissingGrades() const;

  // Takes a sample and its text, valid UTF-8; returns what is to be graded unless that is on its way or
  // known. A sample that is there already is ignored.
  std::optional<v1::GradeRequest> AddSample(const FinishedSample& sample, const std::string& answer);

  // Takes the grade of all samples that share `grade_request_id`; an unknown id is ignored.
  void AddGrade(const std::string& grade_request_id, const v1::Grade& grade, absl::Time now);

  // Whether a grade is missing for want of a reward service: asking again may help.
  bool HasUnscorable() const;

  // Groups in the order in which they were completed. Elements never change.
  const std::vector<std::shared_ptr<const v1::GenerateGroupsResponse>>& completed() const {
    return completed_;
  }
  bool complete() const { return static_cast<int>(completed_.size()) == request_.tasks_size(); }

  const v1::GenerateGroupsRequest& request() const { return request_; }
  // Bytes held, roughly: what was asked and what has come.
  int64_t num_bytes() const { return num_bytes_; }
  int64_t num_samples_decoded() const { return num_samples_decoded_; }
  // Samples that needed no grading of their own.
  int64_t num_grades_shared() const { return num_grades_shared_; }

 private:
  struct Group {
    std::vector<int32_t> prompt_token_ids;
    // transitions[s] is sample s. Never changed once the group is complete, for then it is shared.
    std::shared_ptr<v1::GenerateGroupsResponse> response;
    std::vector<bool> decoded;
    std::vector<bool> graded;
    int num_graded = 0;
    absl::Time first_prefill = absl::InfiniteFuture();
    absl::Time last_token = absl::InfinitePast();
  };
  struct SharedGrade {
    v1::GradeRequest request;
    int task_index = 0;
    std::vector<int> sample_indices;
    bool graded = false;
    v1::Grade grade;
  };

  void AddInvalidGroup(int task_index, const absl::Status& reason);
  void AdoptGroup(const Group& theirs, int task_index);
  SharedGrade& Share(int task_index, int sample_index);
  void GiveGrade(int task_index, int sample_index, const v1::Grade& grade, absl::Time now);
  v1::GradeRequest GradeRequestFor(int task_index, const std::string& answer) const;

  const v1::GenerateGroupsRequest request_;
  std::vector<Group> groups_;
  std::map<std::string, SharedGrade> grades_;  // by request_id of the grade
  std::vector<std::shared_ptr<const v1::GenerateGroupsResponse>> completed_;
  int64_t num_bytes_ = 0;
  int64_t num_samples_decoded_ = 0;
  int64_t num_grades_shared_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_GROUP_ASSEMBLY_H_
