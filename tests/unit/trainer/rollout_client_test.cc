// The client against workers that misbehave on purpose.
#include "trainer/rollout_client.h"

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/rpc/server.h"
#include "tests/support/catch.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// Streams `num_good` groups a call, then fails with `failure` for as many calls as `num_failures` says.
class FakeWorker : public v1::RolloutService::Service {
 public:
  FakeWorker() {
    auto started = RpcServer::Start({}, {{.name = v1::RolloutService::service_full_name(), .service = this}});
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

  absl::Mutex mutex;
  std::unique_ptr<RpcServer> server;
  grpc::Status failure = {grpc::StatusCode::UNAVAILABLE, "killed"};
  grpc::Status prepare_status;
  int num_failures = 0;
  int num_good = 0;
  int num_groups = 0;
  bool unscorable_once = false;
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
  }
};

GenerateRequest Request(uint64_t version = 0) {
  GenerateRequest request{.id = "test", .num_samples = 2, .policy_version = version};
  for (int i = 0; i < 6; ++i) request.tasks.push_back({.id = absl::StrCat("task", i)});
  return request;
}

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
  RolloutClient client({.addresses = {first.server->address(), second.server->address()}});
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(first.num_groups == 3);
  CHECK(second.num_groups == 3);
}

TEST_CASE("a stream that breaks is asked again for what is missing only, under another id") {
  FakeWorker worker;
  worker.num_failures = 1;
  worker.num_good = 4;
  RolloutClient client({.addresses = {worker.server->address()}, .serving_timeout = absl::Seconds(20)});
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(worker.num_groups == 6);
  CHECK(worker.ids.size() == 2);
}

TEST_CASE("a worker that is lost leaves its groups to the others") {
  FakeWorker good, bad;
  bad.num_failures = 100;
  RolloutClient client({.addresses = {good.server->address(), bad.server->address()}});
  CHECK(InTaskOrder(client.Generate(Request())));
  CHECK(good.num_groups == 6);
}

TEST_CASE("a restarted worker is given the present weights before it is asked again") {
  FakeWorker worker;
  RolloutClient client({.addresses = {worker.server->address()}, .serving_timeout = absl::Seconds(20)});
  REQUIRE(client.Publish({.policy_version = 9}).ok());
  CHECK(worker.version == 9);
  worker.version = 0;  // as after a restart
  CHECK(InTaskOrder(client.Generate(Request(9))));
  CHECK(worker.version == 9);
}

TEST_CASE("weights are committed nowhere when one worker refuses them") {
  FakeWorker good, bad;
  bad.prepare_status = {grpc::StatusCode::INVALID_ARGUMENT, "another layout"};
  RolloutClient client({.addresses = {good.server->address(), bad.server->address()}});
  CHECK(absl::IsInvalidArgument(client.Publish({.policy_version = 3})));
  CHECK(good.prepared == 3);
  CHECK(good.version == 0);
}

TEST_CASE("a group with an UNSCORABLE answer is asked for once more") {
  FakeWorker worker;
  worker.unscorable_once = true;
  RolloutClient client({.addresses = {worker.server->address()}});
  const auto groups = client.Generate(Request());
  CHECK(InTaskOrder(groups));
  for (const TransitionGroup& group : *groups) CHECK(group.transitions[0].grade.scored());
  CHECK(worker.num_groups == 7);
}

TEST_CASE("attempts are bounded, and what asking again cannot mend ends at once") {
  FakeWorker worker;
  worker.num_failures = 100;
  RolloutClient client({.addresses = {worker.server->address()}, .num_attempts_max = 3});
  CHECK(absl::IsUnavailable(client.Generate(Request()).status()));
  CHECK(worker.num_failures == 97);
  worker.failure = {grpc::StatusCode::INVALID_ARGUMENT, "no such task"};
  CHECK(absl::IsInvalidArgument(client.Generate(Request()).status()));
  CHECK(worker.num_failures == 96);
}

}  // namespace warpsmith
