// The client against workers that misbehave on purpose.
#include "trainer/workers/rollout_client.h"

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/rpc/server.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"
#include "tests/support/temporary_directory.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// Streams `num_good` groups a call, then fails with `failure` for as many calls as `num_failures` says.
class FakeWorker : public v1::RolloutService::Service {
 public:
  explicit FakeWorker(const std::string& at = "127.0.0.1:0") {
    auto started = RpcServer::Start({.address = at},
                                    {{.name = v1::RolloutService::service_full_name(), .service = this}});
    REQUIRE(started.ok());
    server = *std::move(started);
    server->SetServing(v1::RolloutService::service_full_name(), Serving::kYes);
  }

  grpc::Status GenerateGroups(grpc::ServerContext*, const v1::GenerateGroupsRequest* request,
                              grpc::ServerWriter<v1::GenerateGroupsResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    ids.insert(request->request_id());
    if (request->policy_version() != version)
      return {grpc::StatusCode::FAILED_PRECONDITION, "another version"};
    const bool fails = num_failures > 0;
    if (fails) --num_failures;
    for (int i = 0; i < request->tasks_size() && (!fails || i < num_good); ++i) {
      v1::GenerateGroupsResponse response;
      FillGroup(*request, i, response.mutable_group());
      writer->Write(response);
      ++num_groups;
    }
    return fails ? failure : grpc::Status::OK;
  }
  grpc::Status PrepareWeights(grpc::ServerContext*, const v1::PrepareWeightsRequest* request,
                              v1::PrepareWeightsResponse*) override {
    if (on_prepare) on_prepare();
    absl::MutexLock lock(&mutex);
    prepared = request->manifest().policy_version();
    return prepare_status;
  }
  grpc::Status CommitWeights(grpc::ServerContext*, const v1::CommitWeightsRequest* request,
                             v1::CommitWeightsResponse*) override {
    absl::MutexLock lock(&mutex);
    version = request->policy_version();
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusResponse* response) override {
    response->set_layout_sha256("layout");
    return grpc::Status::OK;
  }

  absl::Mutex mutex;
  std::unique_ptr<RpcServer> server;
  grpc::Status failure = {grpc::StatusCode::UNAVAILABLE, "killed"};
  grpc::Status prepare_status;
  int num_failures = 0;
  int num_good = 0;
  int num_groups = 0;
  bool unscorable_once = false;
  std::function<void()> on_prepare;                 // may be absent
  std::function<void(v1::TransitionGroup&)> spoil;  // what goes out; may be absent
  uint64_t version = 0, prepared = 0;
  std::set<std::string> ids;

 private:
  void FillGroup(const v1::GenerateGroupsRequest& request, int index, v1::TransitionGroup* group) {
    group->set_task_index(index);
    *group->mutable_task() = request.tasks(index);
    for (int sample = 0; sample < request.num_samples(); ++sample) {
      v1::Transition& transition = *group->add_transitions();
      transition.set_sample_index(sample);
      transition.set_policy_version(request.policy_version());
      transition.add_prompt_token_ids(1);
      transition.mutable_grade()->set_verdict(unscorable_once ? v1::VERDICT_UNSCORABLE : v1::VERDICT_CORRECT);
      transition.mutable_grade()->mutable_reward()->set_value(1.0);
    }
    unscorable_once = false;
    if (spoil) spoil(*group);
  }
};

GenerateRequest Request(uint64_t version = 0) {
  GenerateRequest request{.id = "test", .num_samples = 2, .policy_version = version};
  for (int i = 0; i < 6; ++i) request.tasks.push_back({.id = absl::StrCat("task", i)});
  return request;
}

constexpr TransitionLimits kLimits = {.vocab_size = 16, .positions_max = 8};

bool InTaskOrder(const absl::StatusOr<std::vector<TransitionGroup>>& groups) {
  INFO(groups.status());
  REQUIRE(groups.ok());
  REQUIRE(groups->size() == 6);
  for (int i = 0; i < 6; ++i) {
    if ((*groups)[i].task.id != absl::StrCat("task", i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("tasks are spread over workers and groups come back in the order of the tasks") {
  FakeWorker first, second;
  RolloutClient client({.addresses = {first.server->address(), second.server->address()}, .limits = kLimits});
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(first.num_groups == 3);
  CHECK(second.num_groups == 3);
}

TEST_CASE("a stream that breaks is asked again for what is missing only, under the same id") {
  FakeWorker worker;
  worker.num_failures = 1;
  worker.num_good = 4;
  RolloutClient client({.addresses = {worker.server->address()},
                        .limits = kLimits,
                        .wait = {.timeout = absl::Seconds(20)},
                        .run_id = "00ff"});
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(worker.num_groups == 6);
  CHECK(worker.ids == std::set<std::string>{"00ff-test"});
}

TEST_CASE("whoever waits is told of each task's first group, also over a stream that breaks") {
  FakeWorker worker;
  worker.num_failures = 1;
  worker.num_good = 4;
  worker.unscorable_once = true;  // asked for twice, counted once
  RolloutClient client(
      {.addresses = {worker.server->address()}, .limits = kLimits, .wait = {.timeout = absl::Seconds(20)}});
  GenerateRequest request = Request();
  std::vector<std::pair<int, int>> told;
  request.on_group = [&](int num_arrived, int num_wanted) { told.emplace_back(num_arrived, num_wanted); };
  CHECK(InTaskOrder(client.Generate(request)));
  CHECK(worker.num_groups == 7);
  REQUIRE(told.size() == 6);
  for (int i = 0; i < 6; ++i) CHECK(told[i] == std::pair(i + 1, 6));
}

TEST_CASE("a worker that is lost leaves its groups to the others") {
  FakeWorker good, bad;
  bad.num_failures = 100;
  RolloutClient client({.addresses = {good.server->address(), bad.server->address()}, .limits = kLimits});
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(good.num_groups == 6);
}

TEST_CASE("a restarted worker is given the present weights before it is asked again") {
  FakeWorker worker;
  RolloutClient client(
      {.addresses = {worker.server->address()}, .limits = kLimits, .wait = {.timeout = absl::Seconds(20)}});
  REQUIRE(client.Publish({.policy_version = 9}).ok());
  CHECK(worker.version == 9);
  worker.version = 0;  // as after a restart
  CHECK(InTaskOrder(client.Generate(Request(9))));
  CHECK(worker.version == 9);
}

TEST_CASE("weights are committed nowhere when one worker refuses them") {
  FakeWorker good, bad;
  bad.prepare_status = {grpc::StatusCode::INVALID_ARGUMENT, "another layout"};
  RolloutClient client({.addresses = {good.server->address(), bad.server->address()}, .limits = kLimits});
  CHECK(absl::IsInvalidArgument(client.Publish({.policy_version = 3})));
  CHECK(good.prepared == 3);
  CHECK(good.version == 0);
}

TEST_CASE("all workers prepare at once") {
  FakeWorker first, second;
  absl::Mutex mutex;
  int num_preparing = 0;
  first.on_prepare = second.on_prepare = [&] {
    absl::MutexLock lock(&mutex);
    ++num_preparing;
    const auto both = [&] { return num_preparing == 2; };
    CHECK(mutex.AwaitWithTimeout(absl::Condition(&both), absl::Seconds(60)));
  };
  RolloutClient client({.addresses = {first.server->address(), second.server->address()}, .limits = kLimits});
  REQUIRE(client.Publish({.policy_version = 3}).ok());
  CHECK(first.version == 3);
  CHECK(second.version == 3);
}

TEST_CASE("a group with an UNSCORABLE answer is asked for once more") {
  FakeWorker worker;
  worker.unscorable_once = true;
  RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits});
  const auto groups = client.Generate(Request());
  CHECK(InTaskOrder(groups));
  for (const TransitionGroup& group : *groups) CHECK(group.transitions[0].grade.scored());
  CHECK(worker.num_groups == 7);
}

TEST_CASE("groups that are all there are kept when the worker is lost before it grades one again") {
  FakeWorker worker;
  worker.spoil = [&](v1::TransitionGroup& group) {
    group.mutable_transitions(0)->mutable_grade()->set_verdict(v1::VERDICT_UNSCORABLE);
  };
  worker.num_failures = 1;  // after all groups, and then it does not come back
  worker.num_good = 6;
  worker.server->SetServing("", Serving::kNo);
  SaidLines lines;
  RolloutClient client(
      {.addresses = {worker.server->address()},
       .limits = kLimits,
       .wait = {.timeout = absl::Milliseconds(300), .lines = lines.Options(absl::Seconds(60))}});
  const auto groups = client.Generate(Request());
  CHECK(InTaskOrder(groups));
  for (const TransitionGroup& group : *groups) CHECK(group.transitions[1].grade.scored());
}

TEST_CASE("a call that a worker cancelled does not pass for a stop of this process") {
  FakeWorker worker;
  worker.num_failures = 100;
  worker.failure = {grpc::StatusCode::CANCELLED, "ending"};
  worker.server->SetServing("", Serving::kYes);
  RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits, .num_attempts_max = 2});
  const absl::Status status = client.Generate(Request()).status();
  INFO(status);
  CHECK(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("ending"));
}

TEST_CASE("attempts are bounded, and what asking again cannot mend ends at once") {
  FakeWorker worker;
  worker.num_failures = 100;
  RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits, .num_attempts_max = 3});
  CHECK(absl::IsUnavailable(client.Generate(Request()).status()));
  CHECK(worker.num_failures == 97);
  worker.failure = {grpc::StatusCode::INVALID_ARGUMENT, "no such task"};
  CHECK(absl::IsInvalidArgument(client.Generate(Request()).status()));
  CHECK(worker.num_failures == 96);
}

TEST_CASE("a worker that has no room is asked again when it says so, as long as the wait allows") {
  FakeWorker worker;
  SaidLines lines;
  worker.failure = ToGrpcStatus(BackPressureError("4 requests are under way", absl::Milliseconds(5)));
  const auto generate = [&](int num_refusals, absl::Duration timeout, const std::atomic<bool>* stop) {
    worker.num_failures = num_refusals;
    const RolloutWaitOptions wait{.timeout = timeout, .lines = lines.Options(absl::Hours(1)), .stop = stop};
    const std::vector<std::string> addresses = {worker.server->address()};
    return RolloutClient({.addresses = addresses, .limits = kLimits, .wait = wait, .num_attempts_max = 1})
        .Generate(Request());
  };
  CHECK(InTaskOrder(generate(12, absl::Minutes(1), nullptr)));
  REQUIRE(lines.all().size() == 1);
  CHECK_THAT(lines.all().front(),
             Catch::Contains("no room: 4 requests are under way; waiting for at most 1m"));
  CHECK(absl::IsResourceExhausted(generate(1 << 20, absl::Milliseconds(40), nullptr).status()));
  const std::atomic<bool> stop{true};
  CHECK(absl::IsCancelled(generate(1 << 20, absl::Minutes(1), &stop).status()));
}

TEST_CASE("connecting waits for each worker and says who they are") {
  const TemporaryDirectory directory;
  const std::string address = absl::StrCat("unix:", (directory.path() / "worker.sock").string());
  FakeWorker early;
  SaidLines lines;
  RolloutClient client(
      {.addresses = {early.server->address(), address},
       .limits = kLimits,
       .wait = {.timeout = absl::Seconds(60), .lines = lines.Options(absl::Milliseconds(100))}});
  std::unique_ptr<FakeWorker> late;
  std::thread starter([&] {
    lines.Await(2);
    late = std::make_unique<FakeWorker>(address);
  });
  const auto identities = client.Connect();
  starter.join();
  INFO(identities.status());
  REQUIRE(identities.ok());
  REQUIRE(identities->size() == 2);
  CHECK(identities->back().layout_sha256 == "layout");
  CHECK_THAT(lines.all().back(), Catch::Contains(address));
}

TEST_CASE("workers lost in the midst are waited for by name, and the wait is bounded") {
  FakeWorker first, second;
  SaidLines lines;
  RolloutClient client(
      {.addresses = {first.server->address(), second.server->address()},
       .limits = kLimits,
       .wait = {.timeout = absl::Milliseconds(600), .lines = lines.Options(absl::Seconds(60))}});
  REQUIRE(InTaskOrder(client.Generate(Request())));
  first.server->Shutdown(absl::ZeroDuration());
  second.server->Shutdown(absl::ZeroDuration());
  const absl::Status status = client.Generate(Request()).status();
  INFO(status);
  CHECK(absl::IsDeadlineExceeded(status));
  REQUIRE(lines.all().size() == 1);
  CHECK_THAT(lines.all().front(), Catch::StartsWith("waiting for one of the rollout workers at ") &&
                                      Catch::Contains(first.server->address()) &&
                                      Catch::Contains(second.server->address()));
}

TEST_CASE("of several lost workers the one that comes back first is used") {
  FakeWorker gone, back;
  SaidLines lines;
  back.num_failures = 1;
  RolloutClient client({.addresses = {gone.server->address(), back.server->address()},
                        .limits = kLimits,
                        .wait = {.timeout = absl::Hours(1), .lines = lines.Options(absl::Seconds(1))}});
  gone.server->Shutdown(absl::ZeroDuration());
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(back.num_groups == 6);
}

TEST_CASE("a malformed answer is dropped and not asked for again") {
  FakeWorker worker;
  worker.spoil = [](v1::TransitionGroup& group) {
    if (group.task_index() == 2) group.mutable_transitions(1)->add_log_probs(-1);
  };
  RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits});
  const auto groups = client.Generate(Request());
  CHECK(InTaskOrder(groups));
  CHECK_THAT((*groups)[2].transitions[1].malformed, Catch::Contains("1 log-probs for 0 answer tokens"));
  CHECK_FALSE((*groups)[2].transitions[1].grade.scored());
  CHECK((*groups)[2].transitions[0].grade.scored());
  CHECK(worker.num_groups == 6);
}

TEST_CASE("a worker whose every answer is malformed ends the call, by name") {
  FakeWorker worker;
  worker.spoil = [](v1::TransitionGroup& group) {
    for (v1::Transition& transition : *group.mutable_transitions()) transition.set_prompt_token_ids(0, 16);
  };
  RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits});
  const absl::Status status = client.Generate(Request()).status();
  INFO(status);
  CHECK(absl::IsInternal(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains(worker.server->address()) &&
                                                Catch::Contains("all 12") &&
                                                Catch::Contains("prompt token id 16"));
  CHECK(worker.ids.size() == 1);
}

TEST_CASE("a worker that breaks the protocol ends the call, by name") {
  struct Breach {
    const char* reason;
    void (*make)(v1::TransitionGroup& group);
  };
  const Breach breaches[] = {
      {"task_index 6 of 6", [](v1::TransitionGroup& group) { group.set_task_index(6); }},
      {"task_index -1 of 6", [](v1::TransitionGroup& group) { group.set_task_index(-1); }},
      {"sent twice",
       [](v1::TransitionGroup& group) {
         group.set_task_index(0);
         group.mutable_task()->set_id("task0");
       }},
      {"task \"other\"", [](v1::TransitionGroup& group) { group.mutable_task()->set_id("other"); }},
      {"3 transitions, not 2", [](v1::TransitionGroup& group) { group.add_transitions(); }},
      {"policy version 8",
       [](v1::TransitionGroup& group) { group.mutable_transitions(0)->set_policy_version(8); }},
  };
  for (const Breach& breach : breaches) {
    FakeWorker worker;
    worker.spoil = breach.make;
    RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits});
    const absl::Status status = client.Generate(Request()).status();
    INFO(status);
    CHECK(absl::IsInternal(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains(worker.server->address()) && Catch::Contains(breach.reason));
    CHECK(worker.ids.size() == 1);
  }
}

TEST_CASE("a stream that ends without all of its groups is an error that says so, after bounded attempts") {
  FakeWorker worker;
  worker.num_failures = 100;
  worker.failure = grpc::Status::OK;
  RolloutClient client({.addresses = {worker.server->address()}, .limits = kLimits, .num_attempts_max = 3});
  const absl::Status status = client.Generate(Request()).status();
  INFO(status);
  CHECK(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("0 of 6 groups"));
  CHECK(worker.num_failures == 97);
}

}  // namespace warpsmith
