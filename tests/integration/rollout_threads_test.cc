// A rollout worker's threads against each other, in one process: readers who join, repeat and leave requests,
// a trainer that publishes weights, a drain. The model is a few thousand random parameters, the grader a
// hash.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/counter_random.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "prompting/prompts.h"
#include "rollout_workers/rollout_service.h"
#include "tests/integration/in_process_worker.h"
#include "tests/support/catch.h"
#include "tests/support/hash_grade.h"
#include "tests/support/run_together.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_file.h"
#include "tests/support/weights_manifest.h"

namespace warpsmith {
namespace {

constexpr uint64_t kSeed = 611;
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kNumTasks = 3;
constexpr int kNumSamples = 2;
constexpr uint64_t kNumVersions = 4;

class InlineGrader final : public v1::RewardService::Service {
 public:
  grpc::Status Grade(grpc::ServerContext*, const v1::GradeRequest* request,
                     v1::GradeResponse* response) override {
    *response = HashGradeResponse(*request);
    return grpc::Status::OK;
  }
};

v1::GenerateGroupsRequest Request(int number, uint64_t version) {
  v1::GenerateGroupsRequest request;
  request.set_request_id(absl::StrCat("request ", number, " version ", version));
  request.set_policy_version(version);
  request.set_num_samples(kNumSamples);
  request.set_seed(11);
  request.mutable_sampling()->set_temperature(1);
  request.mutable_sampling()->set_top_p(1);
  request.mutable_sampling()->set_answer_tokens_max(12);
  for (int t = 0; t < kNumTasks; ++t) {
    v1::Task& task = *request.add_tasks();
    task.set_id(absl::StrCat("task ", t));
    task.set_skill(v1::SKILL_GENERATE);
    task.set_language(v1::CANDIDATE_LANGUAGE_CPP);
    task.set_reference_source(absl::StrCat("def forward(x):\n    return x + ", number, " + ", t, "\n"));
  }
  return request;
}

// What readers got, and whether it was the same for all who asked the same.
class Answers {
 public:
  // The tokens of one task's group are a function of the request and the weights.
  void Add(const std::string& request_id, const v1::TransitionGroup& group) {
    std::string tokens;
    for (const v1::Transition& transition : group.transitions()) {
      absl::StrAppend(&tokens, transition.policy_version(), ":");
      for (const int32_t token : transition.answer_token_ids()) absl::StrAppend(&tokens, token, " ");
    }
    absl::MutexLock lock(&mutex_);
    const auto [known, is_new] = tokens_.emplace(std::pair(request_id, group.task_index()), tokens);
    if (known->second != tokens || group.transitions_size() != kNumSamples) ++num_wrong_;
  }

  // A call that read `num_groups`; `left`: the reader cancelled it.
  void End(const absl::Status& status, int num_groups, bool left) {
    absl::MutexLock lock(&mutex_);
    if (left) return;
    if (status.ok()) {
      ++num_complete_;
      num_wrong_ += num_groups != kNumTasks;
    } else if (absl::IsUnavailable(status)) {
      ++num_drained_;
    } else {
      // Other weights came first, or too much is under way.
      num_wrong_ += !absl::IsFailedPrecondition(status) && !absl::IsResourceExhausted(status);
    }
  }

  int num_complete() const {
    absl::MutexLock lock(&mutex_);
    return num_complete_;
  }
  int num_drained() const {
    absl::MutexLock lock(&mutex_);
    return num_drained_;
  }
  int num_wrong() const {
    absl::MutexLock lock(&mutex_);
    return num_wrong_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::pair<std::string, int>, std::string> tokens_ ABSL_GUARDED_BY(mutex_);
  int num_complete_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_drained_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_wrong_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Reads a request to its end, or leaves after `num_read_max` groups.
void ReadGroups(v1::RolloutService::Stub* stub, const v1::GenerateGroupsRequest& request, int num_read_max,
                Answers* answers) {
  grpc::ClientContext context;
  SetTimeout(&context, kPatience);
  const auto reader = stub->GenerateGroups(&context, request);
  int num_groups = 0;
  for (v1::GenerateGroupsResponse response; num_groups < num_read_max && reader->Read(&response);
       ++num_groups) {
    answers->Add(request.request_id(), response.group());
  }
  const bool leaves = num_groups == num_read_max;
  if (leaves) context.TryCancel();
  answers->End(FromGrpcStatus(reader->Finish()), num_groups, leaves);
}

void ReadSeveral(v1::RolloutService::Stub* stub, int reader, int num_requests, Answers* answers) {
  const uint64_t key = UniformWord(kSeed, static_cast<uint64_t>(reader));
  for (int i = 0; i < num_requests; ++i) {
    const uint64_t word = UniformWord(key, static_cast<uint64_t>(i));
    v1::GetStatusResponse status;
    grpc::ClientContext context;
    stub->GetStatus(&context, {}, &status);
    const int num_read_max = word % 3 == 0 ? static_cast<int>(word >> 8 & 1) : kNumTasks + 1;
    ReadGroups(stub, Request(static_cast<int>(word >> 16 & 3), status.policy_version()), num_read_max,
               answers);
  }
}

// The last call waits until nothing decodes; those before it give up soon, for the service keeps 100 ms to
// answer.
absl::Status Commit(v1::RolloutService::Stub* stub, uint64_t version) {
  absl::Status status;
  for (const absl::Duration timeout : {absl::Milliseconds(105), absl::Milliseconds(110), kPatience}) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    v1::CommitWeightsRequest request;
    request.set_policy_version(version);
    v1::CommitWeightsResponse response;
    status = FromGrpcStatus(stub->CommitWeights(&context, request, &response));
    if (status.ok()) break;
  }
  return status;
}

}  // namespace

TEST_CASE("readers who join, repeat and leave while weights change all read the same groups") {
  CAPTURE(kSeed);
  InlineGrader grader;
  InProcessWorker rig{&grader};
  Answers answers;
  const TemporaryDirectory folder;
  std::atomic<uint64_t> num_swapped{0};
  for (uint64_t version = 1; version <= kNumVersions; ++version) {
    const OfferedWeights offered =
        WriteWeightsFile(rig.config(), version, version, folder.path() / std::to_string(version));
    RunTogether(5, [&](int thread) {
      const auto stub = rig.Dial();
      if (thread > 0) return ReadSeveral(stub.get(), thread, 10, &answers);
      grpc::ClientContext context;
      v1::PrepareWeightsResponse response;
      if (!stub->PrepareWeights(&context, PrepareRequestOf(offered), &response).ok()) return;
      if (Commit(stub.get(), version).ok()) ++num_swapped;
    });
  }
  CHECK(num_swapped == kNumVersions);
  CHECK(answers.num_wrong() == 0);
  CHECK(answers.num_complete() > 0);
  CHECK(rig.state() == RolloutService::State::kReady);
}

TEST_CASE("a drain in the midst of requests ends every one of them") {
  CAPTURE(kSeed);
  InlineGrader grader;
  InProcessWorker rig{&grader};
  Answers answers;
  RunTogether(4, [&](int thread) {
    const auto stub = rig.Dial();
    if (thread > 0) {
      for (int i = 0; answers.num_drained() < 3; ++i)
        ReadGroups(stub.get(), Request(i, 0), kNumTasks + 1, &answers);
      return;
    }
    while (answers.num_complete() < 5) ReadGroups(stub.get(), Request(0, 0), kNumTasks + 1, &answers);
    grpc::ClientContext context;
    v1::DrainRequest request;
    v1::DrainResponse response;
    stub->Drain(&context, request, &response);
  });
  CHECK(answers.num_wrong() == 0);
  CHECK(rig.state() == RolloutService::State::kDraining);
}

}  // namespace warpsmith
