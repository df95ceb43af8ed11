// A rollout worker that sleeps and is woken by its callers, on the fake of a device.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "tests/integration/in_process_worker.h"
#include "tests/support/catch.h"
#include "tests/support/fake_step_device.h"
#include "tests/support/hash_grade.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_manifest.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class HashGrader final : public v1::RewardService::Service {
 public:
  grpc::Status Grade(grpc::ServerContext*, const v1::GradeRequest* request,
                     v1::GradeResponse* response) override {
    *response = HashGradeResponse(*request);
    return grpc::Status::OK;
  }
};

struct Rig {
  absl::Status Sleep(v1::SleepDepth depth) {
    grpc::ClientContext context;
    SetTimeout(&context, kPatience);
    v1::SleepRequest request;
    request.set_depth(depth);
    v1::SleepResponse response;
    return FromGrpcStatus(stub->Sleep(&context, request, &response));
  }
  absl::Status Wake() {
    grpc::ClientContext context;
    SetTimeout(&context, kPatience);
    v1::WakeResponse response;
    return FromGrpcStatus(stub->Wake(&context, {}, &response));
  }
  v1::GetStatusResponse Status() {
    grpc::ClientContext context;
    v1::GetStatusResponse status;
    REQUIRE(stub->GetStatus(&context, {}, &status).ok());
    return status;
  }
  // How many groups came.
  absl::StatusOr<int> Generate(const std::string& id, uint64_t version = 0) {
    v1::GenerateGroupsRequest request;
    request.set_request_id(id);
    request.set_num_samples(3);
    request.set_seed(11);
    request.set_policy_version(version);
    request.mutable_sampling()->set_temperature(1);
    request.mutable_sampling()->set_top_p(1);
    request.mutable_sampling()->set_answer_tokens_max(12);
    v1::Task& task = *request.add_tasks();
    task.set_id("task");
    task.set_skill(v1::SKILL_GENERATE);
    task.set_reference_source("def forward(x):\n    return x + 1\n");
    grpc::ClientContext context;
    SetTimeout(&context, kPatience);
    const auto reader = stub->GenerateGroups(&context, request);
    int num_groups = 0;
    for (v1::GenerateGroupsResponse response; reader->Read(&response);) ++num_groups;
    const absl::Status status = FromGrpcStatus(reader->Finish());
    if (!status.ok()) return status;
    return num_groups;
  }
  // Prepares `version` from a file, and commits it.
  absl::Status Prepare(const std::filesystem::path& path, uint64_t version) {
    const OfferedWeights offered = WriteWeightsFile(worker.config(), version, version, path);
    grpc::ClientContext context;
    v1::PrepareWeightsResponse response;
    return FromGrpcStatus(stub->PrepareWeights(&context, PrepareRequestOf(offered), &response));
  }
  absl::Status Commit(uint64_t version) {
    v1::CommitWeightsRequest request;
    request.set_policy_version(version);
    grpc::ClientContext context;
    SetTimeout(&context, kPatience);
    v1::CommitWeightsResponse response;
    return FromGrpcStatus(stub->CommitWeights(&context, request, &response));
  }

  HashGrader grader;
  const std::shared_ptr<FakeStepDeviceState> device = std::make_shared<FakeStepDeviceState>();
  InProcessWorker worker{&grader,
                         {.table = {.num_idle_max = 4}, .num_requests_max = 6},
                         [this](const ModelConfig& config, const EngineOptions& options) {
                           return MakeFakeDeviceBatch(config, options, device);
                         }};
  const std::unique_ptr<v1::RolloutService::Stub> stub = worker.Dial();
};

}  // namespace

TEST_CASE(
    "a worker that is told to sleep gives its pages back, holds requests, and goes on when it is woken") {
  Rig rig;
  CHECK_FALSE(rig.Status().asleep());
  CHECK(rig.Status().has_weights());
  REQUIRE(rig.Sleep(v1::SLEEP_DEPTH_UNSPECIFIED).ok());
  REQUIRE(rig.Sleep(v1::SLEEP_DEPTH_PAGES).ok());
  CHECK_FALSE(rig.device->has_pages);
  CHECK(rig.device->has_weight_memory);
  CHECK(rig.Status().asleep());
  CHECK(rig.Status().has_weights());
  CHECK(rig.worker.state() == RolloutService::State::kReady);
  absl::StatusOr<int> generated = absl::UnknownError("not asked");
  std::thread asking([&] { generated = rig.Generate("held"); });
  const absl::Time give_up = absl::Now() + kPatience;
  while (rig.Status().num_waiting_samples() == 0 && absl::Now() < give_up)
    absl::SleepFor(absl::Milliseconds(5));
  CHECK(rig.Status().num_waiting_samples() == 3);
  CHECK(rig.Status().num_tokens_decoded() == 0);
  REQUIRE(rig.Wake().ok());
  REQUIRE(rig.Wake().ok());
  asking.join();
  INFO(generated.status());
  CHECK(generated.value() == 1);
  CHECK_FALSE(rig.Status().asleep());
}

TEST_CASE("a worker that gave its weights back takes no request until it is awake and has new ones") {
  const TemporaryDirectory directory;
  Rig rig;
  REQUIRE(rig.Sleep(v1::SLEEP_DEPTH_PAGES_AND_WEIGHTS).ok());
  CHECK_FALSE(rig.device->has_weight_memory);
  CHECK(rig.Status().asleep());
  CHECK_FALSE(rig.Status().has_weights());
  CHECK(rig.worker.state() == RolloutService::State::kWithoutWeights);
  CHECK(absl::IsFailedPrecondition(rig.Generate("refused").status()));
  REQUIRE(rig.Prepare(directory.path() / "1", 1).ok());
  const absl::Status asleep = rig.Commit(1);
  CHECK(absl::IsFailedPrecondition(asleep));
  CHECK_THAT(std::string(asleep.message()), Catch::Contains("wake it first"));
  REQUIRE(rig.Wake().ok());
  CHECK(absl::IsFailedPrecondition(rig.Generate("refused").status()));
  REQUIRE(rig.Commit(1).ok());
  CHECK(rig.worker.state() == RolloutService::State::kReady);
  CHECK(rig.Status().has_weights());
  CHECK(rig.Status().policy_version() == 1);
  CHECK(rig.Generate("taken", 1).value() == 1);
}

TEST_CASE("a worker whose memory others have taken sleeps on, and says so") {
  Rig rig;
  REQUIRE(rig.Sleep(v1::SLEEP_DEPTH_PAGES).ok());
  rig.device->memory_is_taken = true;
  CHECK(absl::IsResourceExhausted(rig.Wake()));
  CHECK(rig.Status().asleep());
  rig.device->memory_is_taken = false;
  REQUIRE(rig.Wake().ok());
  CHECK(rig.Generate("after").value() == 1);
}

TEST_CASE("a worker on the CPU says that it does not sleep") {
  HashGrader grader;
  const InProcessWorker worker(&grader);
  grpc::ClientContext context;
  v1::SleepResponse response;
  CHECK(worker.Dial()->Sleep(&context, {}, &response).error_code() == grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace warpsmith
