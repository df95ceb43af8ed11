// A rollout worker and its grader as processes on Unix sockets, for tests.
#ifndef WARPSMITH_TESTS_INTEGRATION_ROLLOUT_RIG_H_
#define WARPSMITH_TESTS_INTEGRATION_ROLLOUT_RIG_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_file.h"
#include "tests/support/weights_manifest.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
// A worker of some seventy thousand parameters.
inline constexpr char kConfig[] = R"(
model: {vocab_size: 1536, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 4,
  num_key_value_heads: 2, head_dim: 16, max_position_embeddings: 1024, tie_word_embeddings: true}
rollout: {num_slots: 12, context_tokens_max: 1024, num_threads: 2}
)";

// The shape in kConfig.
inline ModelConfig Shape() {
  return {.vocab_size = 1536,
          .hidden_size = 32,
          .intermediate_size = 64,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 16,
          .max_position_embeddings = 1024,
          .tie_word_embeddings = true};
}

using Groups = std::map<int, v1::TransitionGroup>;  // by task_index

// Grader and worker on Unix sockets in a folder of their own.
class Rig {
 public:
  explicit Rig(int grade_delay_ms = 0, const std::vector<std::string>& flags = {})
      : delay_ms_(grade_delay_ms) {
    REQUIRE(WriteFileAtomically(directory_.path() / "run.yaml", kConfig).ok());
    StartGrader();
    std::vector<std::string> arguments = {"--config", directory_.path() / "run.yaml", "--reward-address",
                                          RewardAddress()};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    worker_ = std::make_unique<ServerProcess>("warpsmith-rollout", arguments);
    REQUIRE(worker_->address() != "");
    channel_ = CreateChannel(worker_->address());
    stub_ = v1::RolloutService::NewStub(channel_);
  }

  void StartGrader() {
    grader_ = std::make_unique<ServerProcess>(
        "warpsmith-hash-grader",
        std::vector<std::string>{"--address", RewardAddress(), "--delay-ms", std::to_string(delay_ms_)});
    REQUIRE(grader_->address() != "");
  }
  void AwaitServing() {
    REQUIRE(WaitUntilServing(channel_, v1::RolloutService::service_full_name(), absl::Seconds(60)).ok());
  }

  // Whether the health service says so within 200 ms.
  bool Serves(const std::string& service) {
    return WaitUntilServing(channel_, service, absl::Milliseconds(200)).ok();
  }

  absl::Status Generate(const v1::GenerateGroupsRequest& request, Groups* groups) {
    grpc::ClientContext context;
    SetTimeout(&context, absl::Seconds(90));
    const auto reader = stub_->GenerateGroups(&context, request);
    for (v1::GenerateGroupsResponse response; reader->Read(&response);) {
      const int index = response.group().task_index();
      CHECK(groups->count(index) == 0);
      (*groups)[index] = response.group();
    }
    return FromGrpcStatus(reader->Finish());
  }
  absl::Status Prepare(const OfferedWeights& published) {
    grpc::ClientContext context;
    v1::PrepareWeightsResponse response;
    return FromGrpcStatus(stub_->PrepareWeights(&context, PrepareRequestOf(published), &response));
  }
  absl::Status Commit(uint64_t version, absl::Duration timeout = absl::Seconds(30)) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    v1::CommitWeightsRequest request;
    request.set_policy_version(version);
    v1::CommitWeightsResponse response;
    return FromGrpcStatus(stub_->CommitWeights(&context, request, &response));
  }
  v1::GetStatusResponse Status() {
    grpc::ClientContext context;
    v1::GetStatusResponse response;
    REQUIRE(stub_->GetStatus(&context, {}, &response).ok());
    return response;
  }
  // Asks until no sample decodes; false after 30 s.
  bool AwaitIdle() {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (absl::Now() < deadline) {
      if (Status().num_active_samples() == 0) return true;
    }
    return false;
  }

  ServerProcess& grader() { return *grader_; }
  ServerProcess& worker() { return *worker_; }
  v1::RolloutService::Stub& stub() { return *stub_; }
  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  std::string RewardAddress() const {
    return absl::StrCat("unix:", (directory_.path() / "reward.sock").string());
  }

  const int delay_ms_;
  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> grader_;
  std::unique_ptr<ServerProcess> worker_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::RolloutService::Stub> stub_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_INTEGRATION_ROLLOUT_RIG_H_
