// A request that is larger than what a worker takes.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/rpc/server.h"
#include "proto/request_limits.h"
#include "tests/support/catch.h"
#include "trainer/workers/rollout_client.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// Answers the tasks in reverse order, and refuses what an engine refuses.
struct LimitedWorker : v1::RolloutService::Service {
  LimitedWorker() {
    auto started = RpcServer::Start({}, {{.name = v1::RolloutService::service_full_name(), .service = this}});
    REQUIRE(started.ok());
    server = *std::move(started);
  }

  grpc::Status GenerateGroups(grpc::ServerContext*, const v1::GenerateGroupsRequest* request,
                              grpc::ServerWriter<v1::GenerateGroupsResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    ids.insert(request->request_id());
    seeds.insert(request->seed());
    if (request->tasks_size() * request->num_samples() > kRequestSamplesMax)
      return {grpc::StatusCode::INVALID_ARGUMENT, "split it"};
    for (int i = request->tasks_size() - 1; i >= 0; --i) {
      v1::GenerateGroupsResponse response;
      response.mutable_group()->set_task_index(i);
      *response.mutable_group()->mutable_task() = request->tasks(i);
      for (int sample = 0; sample < request->num_samples(); ++sample) {
        v1::Transition& transition = *response.mutable_group()->add_transitions();
        transition.set_sample_index(sample);
        transition.add_prompt_token_ids(1);
        transition.mutable_grade()->set_verdict(v1::VERDICT_CORRECT);
      }
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  absl::Mutex mutex;
  std::set<std::string> ids;
  std::set<uint64_t> seeds;
  std::unique_ptr<RpcServer> server;
};

TEST_CASE("a request of more samples than a worker takes is asked for in parts, each under its own id") {
  LimitedWorker worker;
  RolloutClient client(
      {.addresses = {worker.server->address()}, .limits = {.vocab_size = 16, .positions_max = 8}});
  GenerateRequest request{.id = "test", .num_samples = kGroupSamplesMax, .seed = 7};
  for (int i = 0; i < 20; ++i) request.tasks.push_back({.id = absl::StrCat("task", i)});
  std::vector<std::pair<int, int>> told;
  request.on_group = [&](int num_arrived, int num_wanted) { told.emplace_back(num_arrived, num_wanted); };
  const auto groups = client.Generate(request);
  INFO(groups.status());
  REQUIRE(groups.ok());
  REQUIRE(groups->size() == 20);
  for (int i = 0; i < 20; ++i) {
    CHECK((*groups)[i].task.id == absl::StrCat("task", i));
    CHECK((*groups)[i].transitions.size() == kGroupSamplesMax);
  }
  REQUIRE(told.size() == 20);
  CHECK(told.back() == std::pair(20, 20));
  CHECK(worker.ids == std::set<std::string>{"test", "test-part-1"});
  CHECK(worker.seeds == std::set<uint64_t>{7});
}

}  // namespace
}  // namespace warpsmith
