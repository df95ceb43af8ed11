// What the client asks of its workers before it asks for anything else.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/rpc/server.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"
#include "trainer/workers/rollout_client.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// A worker whose reward service has the formula kevin-v1 and grades C++ and Python on a CPU.
struct CpuWorker : v1::RolloutService::Service {
  CpuWorker() {
    auto started = RpcServer::Start({}, {{.name = v1::RolloutService::service_full_name(), .service = this}});
    REQUIRE(started.ok());
    server = *std::move(started);
    for (const char* name : {v1::RolloutService::service_full_name(), ""}) {
      server->SetServing(name, Serving::kYes);
    }
  }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override {
    if (before_status) before_status();
    if (!request->formula().empty() && request->formula() != "kevin-v1") {
      return {grpc::StatusCode::INVALID_ARGUMENT, "it has kevin-v1"};
    }
    const auto& devices = request->devices();
    if (request->language() == v1::CANDIDATE_LANGUAGE_CUDA ||
        std::find(devices.begin(), devices.end(), v1::DEVICE_CUDA) != devices.end()) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "it grades cpp, on cpu"};
    }
    if (request->has_formula()) response->set_formula("kevin-v1");
    response->set_layout_sha256("layout");
    (*response->mutable_model_fields())["rope_theta"] = "5000.0";
    response->add_stop_token_ids(2);
    return grpc::Status::OK;
  }

  absl::StatusOr<std::vector<WorkerIdentity>> Connect(RolloutClientOptions options) const {
    options.addresses = {server->address()};
    options.limits = {.vocab_size = 16, .positions_max = 8};
    return RolloutClient(options).Connect();
  }

  std::function<void()> before_status;
  std::unique_ptr<RpcServer> server;
};

TEST_CASE("a worker that waits for its reward service is waited for in words") {
  CpuWorker worker;
  SaidLines said;
  worker.before_status = [&] { said.Await(2); };
  CHECK(worker.Connect({.wait = {.lines = said.Options(absl::Milliseconds(100))}}).ok());
  CHECK_THAT(said.all().back(),
             Catch::StartsWith("waiting for the rollout worker at " + worker.server->address() +
                               ", which asks its reward service, for ") &&
                 Catch::EndsWith("of at most 2m"));
}

TEST_CASE("a formula that the reward service lacks is refused when the client connects") {
  const CpuWorker worker;
  const WorkerIdentity identity = worker.Connect({})->front();
  CHECK(identity.address == worker.server->address());
  CHECK(identity.layout_sha256 == "layout");
  CHECK(identity.model_fields.at("rope_theta") == "5000.0");
  CHECK(identity.stop_token_ids == std::vector<int32_t>{2});
  for (const char* formula : {"", "kevin-v1"}) {
    CHECK(worker.Connect({.formula = formula})->front().formula == "kevin-v1");
  }
  const absl::Status unknown = worker.Connect({.formula = "kevin"}).status();
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK_THAT(std::string(unknown.message()),
             Catch::Contains(worker.server->address()) && Catch::Contains("it has kevin-v1"));
}

TEST_CASE("a language or a device that the reward service lacks is refused when the client connects") {
  const CpuWorker worker;
  CHECK(worker.Connect({.language = "cpp", .devices = {"cpu"}}).ok());
  for (const RolloutClientOptions& options :
       {RolloutClientOptions{.language = "cuda"},
        RolloutClientOptions{.language = "kernelbench_python", .devices = {"cpu", "cuda"}}}) {
    const absl::Status lacks = worker.Connect(options).status();
    CHECK(absl::IsFailedPrecondition(lacks));
    CHECK_THAT(std::string(lacks.message()),
               Catch::Contains(worker.server->address()) && Catch::Contains("it grades cpp, on cpu"));
  }
}

}  // namespace
}  // namespace warpsmith
