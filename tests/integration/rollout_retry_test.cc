// The trainer's client and a rollout worker in one process: a retried request costs what was lost, no more.
#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/rpc/status.h"
#include "tests/integration/in_process_worker.h"
#include "tests/support/catch.h"
#include "tests/support/hash_grade.h"
#include "trainer/workers/rollout_client.h"
#include "trainer/workers/wire.h"

namespace warpsmith {
namespace {

constexpr int kNumTasks = 6;
constexpr int kNumSamples = 2;

// Counts what it is asked; a task may be UNSCORABLE at first, or its grades held back.
class CountingGrader final : public v1::RewardService::Service {
 public:
  grpc::Status Grade(grpc::ServerContext*, const v1::GradeRequest* request,
                     v1::GradeResponse* response) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++num_calls_[request->task().id()];
    while (held_back_.count(request->task().id()) > 0) released_.Wait(&mutex_);
    *response = HashGradeResponse(*request);
    if (unscorable_.count(request->task().id()) > 0) {
      response->mutable_grade()->set_verdict(v1::VERDICT_UNSCORABLE);
      response->mutable_grade()->clear_reward();
    }
    return grpc::Status::OK;
  }

  void SetUnscorable(std::set<std::string> tasks) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    unscorable_ = std::move(tasks);
  }
  void HoldBack(std::set<std::string> tasks) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    held_back_ = std::move(tasks);
    released_.SignalAll();
  }
  std::map<std::string, int> num_calls() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return num_calls_;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::CondVar released_;
  std::map<std::string, int> num_calls_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> unscorable_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> held_back_ ABSL_GUARDED_BY(mutex_);
};

// Stands before a worker. Its first stream breaks after `num_good` groups, though the worker has done all.
class BreakingDoor final : public v1::RolloutService::Service {
 public:
  BreakingDoor(const InProcessWorker& worker, int num_good, std::function<void()> on_break)
      : stub_(worker.Dial()), num_good_(num_good), on_break_(std::move(on_break)) {
    server_ =
        RpcServer::Start({}, {{.name = v1::RolloutService::service_full_name(), .service = this}}).value();
  }
  const std::string& address() const { return server_->address(); }
  // Of the tasks of each call.
  std::vector<int> num_asked() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return num_asked_;
  }

  grpc::Status GenerateGroups(grpc::ServerContext*, const v1::GenerateGroupsRequest* request,
                              grpc::ServerWriter<v1::GenerateGroupsResponse>* writer) override {
    absl::MutexLock lock(&mutex_);
    num_asked_.push_back(request->tasks_size());
    const bool breaks = num_asked_.size() == 1 && num_good_ < request->tasks_size();
    grpc::ClientContext context;
    const auto reader = stub_->GenerateGroups(&context, *request);
    int num_read = 0;
    for (v1::GenerateGroupsResponse response; reader->Read(&response); ++num_read) {
      if (!breaks || num_read < num_good_) writer->Write(response);
    }
    const grpc::Status status = reader->Finish();
    if (!breaks) return status;
    on_break_();
    return {grpc::StatusCode::UNAVAILABLE, "the stream broke"};
  }

 private:
  const std::unique_ptr<v1::RolloutService::Stub> stub_;
  const int num_good_;
  const std::function<void()> on_break_;
  mutable absl::Mutex mutex_;
  std::vector<int> num_asked_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RpcServer> server_;
};

GenerateRequest Request(const std::string& id, int num_tasks) {
  GenerateRequest request{
      .id = id, .num_samples = kNumSamples, .sampling = {.answer_tokens_max = 12}, .seed = 11};
  for (int t = 0; t < num_tasks; ++t) {
    request.tasks.push_back({.id = absl::StrCat("task", t),
                             .reference_source = absl::StrCat("def forward(x):\n    return x + ", t, "\n")});
  }
  return request;
}

RolloutClient Client(const std::string& address, const InProcessWorker& worker) {
  return RolloutClient({.addresses = {address},
                        .limits = {.vocab_size = worker.config().vocab_size,
                                   .positions_max = worker.config().max_position_embeddings}});
}

int64_t NumTokensDecoded(const InProcessWorker& worker) {
  grpc::ClientContext context;
  v1::GetStatusResponse status;
  REQUIRE(worker.Dial()->GetStatus(&context, {}, &status).ok());
  return status.num_tokens_decoded();
}

// Reads a call to its end.
struct Call {
  Call(const InProcessWorker& worker, const v1::GenerateGroupsRequest& request)
      : stub(worker.Dial()), reader(stub->GenerateGroups(&context, request)) {}

  absl::Status End() {
    for (v1::GenerateGroupsResponse response; reader->Read(&response);) groups.push_back(response.group());
    return FromGrpcStatus(reader->Finish());
  }

  grpc::ClientContext context;
  std::unique_ptr<v1::RolloutService::Stub> stub;
  std::unique_ptr<grpc::ClientReader<v1::GenerateGroupsResponse>> reader;
  std::vector<v1::TransitionGroup> groups;
};

bool HasUnscorable(const std::vector<v1::TransitionGroup>& groups) {
  for (const v1::TransitionGroup& group : groups) {
    for (const v1::Transition& transition : group.transitions()) {
      if (transition.grade().verdict() == v1::VERDICT_UNSCORABLE) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("after a broken stream the retry adopts what was decoded and graded, whatever part it asks for") {
  for (const int num_good : {0, 4}) {
    CAPTURE(num_good);
    CountingGrader grader;
    const InProcessWorker worker(&grader);
    int64_t num_decoded = 0;
    std::map<std::string, int> num_graded;
    const BreakingDoor door(worker, num_good, [&] {
      num_decoded = NumTokensDecoded(worker);
      num_graded = grader.num_calls();
    });
    RolloutClient client = Client(door.address(), worker);
    const auto groups = client.Generate(Request("broken", kNumTasks));
    INFO(groups.status());
    REQUIRE(groups.ok());
    REQUIRE(groups->size() == kNumTasks);
    for (const TransitionGroup& group : *groups) CHECK(group.transitions[1].answer_token_ids.size() > 0);
    CHECK(door.num_asked() == std::vector<int>{kNumTasks, kNumTasks - num_good});
    CHECK(num_decoded > 0);
    CHECK(NumTokensDecoded(worker) == num_decoded);
    CHECK(grader.num_calls() == num_graded);
  }
}

TEST_CASE("UNSCORABLE answers that are asked for once more are graded again and not decoded again") {
  CountingGrader grader;
  grader.SetUnscorable({"task2"});
  const InProcessWorker worker(&grader);
  int64_t num_decoded = 0;
  std::map<std::string, int> num_graded;
  const BreakingDoor door(worker, 5, [&] {  // breaks so that the first stream's end is seen
    num_decoded = NumTokensDecoded(worker);
    num_graded = grader.num_calls();
    grader.SetUnscorable({});
  });
  RolloutClient client = Client(door.address(), worker);
  const auto groups = client.Generate(Request("unscorable", kNumTasks));
  INFO(groups.status());
  REQUIRE(groups.ok());
  for (const Transition& transition : (*groups)[2].transitions) CHECK(transition.grade.scored());
  CHECK(NumTokensDecoded(worker) == num_decoded);
  for (const auto& [task, count] : grader.num_calls()) {
    CAPTURE(task);
    CHECK(count == (task == "task2" ? 2 : 1) * num_graded[task]);
  }
}

TEST_CASE("a repeated call is not given UNSCORABLE grades of one that is still under way") {
  CountingGrader grader;
  grader.SetUnscorable({"task0"});
  grader.HoldBack({"task1"});
  const InProcessWorker worker(&grader);
  const v1::GenerateGroupsRequest request = RequestToWire(Request("joined", 2), {0, 1});
  Call first(worker, request);
  v1::GenerateGroupsResponse response;
  REQUIRE(first.reader->Read(&response));
  CHECK(HasUnscorable({response.group()}));
  grader.SetUnscorable({});
  Call second(worker, request);
  REQUIRE(second.reader->Read(&response));
  CHECK_FALSE(HasUnscorable({response.group()}));
  grader.HoldBack({});
  CHECK(absl::IsAborted(first.End()));
  CHECK(second.End().ToString() == "OK");
  CHECK(second.groups.size() == 1);
}

TEST_CASE("a retry that is told to come back later finds what was decoded before") {
  CountingGrader grader;
  grader.SetUnscorable({"task0"});
  const InProcessWorker worker(&grader, {.table = {.num_idle_max = 4}, .num_requests_max = 1});
  const v1::GenerateGroupsRequest request = RequestToWire(Request("refused", 1), {0});
  Call first(worker, request);
  REQUIRE(first.End().ok());
  CHECK(HasUnscorable(first.groups));
  grader.SetUnscorable({});
  grader.HoldBack({"task1"});
  Call other(worker, RequestToWire(Request("other", 3), {2, 1}));
  v1::GenerateGroupsResponse response;
  REQUIRE(other.reader->Read(&response));  // under way, and it stays so
  Call refused(worker, request);
  const absl::Status too_many = refused.End();
  CHECK(absl::IsResourceExhausted(too_many));
  CHECK(GetRetryDelay(too_many).has_value());
  grader.HoldBack({});
  REQUIRE(other.End().ok());
  const int64_t num_decoded = NumTokensDecoded(worker);
  Call again(worker, request);
  REQUIRE(again.End().ok());
  CHECK_FALSE(HasUnscorable(again.groups));
  CHECK(NumTokensDecoded(worker) == num_decoded);
}

}  // namespace warpsmith
