#include "rollout_workers/worker_config.h"

#include <vector>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kModel[] = R"(
model: {vocab_size: 1536, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 4,
  num_key_value_heads: 2, head_dim: 16, max_position_embeddings: 1024}
)";

absl::StatusOr<WorkerConfig> Read(const std::string& text, const std::vector<std::string>& assignments = {}) {
  const TemporaryDirectory directory;
  REQUIRE(WriteFileAtomically(directory.path() / "run.yaml", text).ok());
  return ReadWorkerConfig(directory.path() / "run.yaml", assignments);
}

}  // namespace

TEST_CASE("the configurations of the tree are the worker's as well as the trainer's") {
  for (const char* const path : {"configs/demo.yaml", "configs/smoke.yaml"}) {
    CHECK(ReadWorkerConfig(path, {}).status().ToString() == "OK");
  }
}

TEST_CASE("keys and assignments are read with their units") {
  const WorkerConfig config =
      Read(std::string(kModel) + "rollout: {context_tokens_max: 512, grade_give_up_seconds: 2.5}\n",
           {"rollout.num_slots=3"})
          .value();
  CHECK(config.model.hidden_size == 32);
  CHECK(config.context_tokens_max == 512);
  CHECK(config.grade_give_up == absl::Milliseconds(2500));
  CHECK(config.num_slots == 3);
}

TEST_CASE("a worker decodes on the CPU unless its configuration names a GPU") {
  const auto cuda = [](const std::string& device) {
    return Read(std::string(kModel) + "rollout: {context_tokens_max: 512, device: \"" + device + "\"}\n")
        .value()
        .cuda;
  };
  CHECK_FALSE(Read(std::string(kModel) + "rollout: {context_tokens_max: 512}\n").value().cuda.has_value());
  CHECK_FALSE(cuda("cpu").has_value());
  CHECK(cuda("cuda").value().devices == std::vector{0});
  CHECK(cuda("cuda:3").value().devices == std::vector{3});
  CHECK(cuda("cuda:0,1").value().devices == std::vector{0, 1});
  CHECK(cuda("cuda:3").value().dtype == DeviceDtype::kBfloat16);
  CHECK(cuda("cuda:3 float16").value().devices == std::vector{3});
  CHECK(cuda("cuda:3 float16").value().dtype == DeviceDtype::kFloat16);
  CHECK(cuda("cuda:3 auto 0.6").value().memory_share == 0.6);
}

TEST_CASE("misspelt keys, wrong ranges and contradictions are errors with their place") {
  const auto fault = [](const std::string& rollout) {
    return std::string(Read(std::string(kModel) + "rollout: " + rollout).status().message());
  };
  CHECK_THAT(fault("{num_slot: 3}"), Catch::Contains("num_slots") && Catch::Contains("run.yaml:4"));
  CHECK_THAT(fault("{num_slots: 0}"), Catch::Contains("num_slots"));
  CHECK_THAT(fault("{device: cuda half}"), Catch::Contains("rollout.device") && Catch::Contains("float16"));
  CHECK_THAT(fault("{device: gpu}"), Catch::Contains("rollout.device") && Catch::Contains("cuda:N"));
  CHECK_THAT(fault("{context_tokens_max: 4096}"), Catch::Contains("max_position_embeddings"));
}

TEST_CASE("a reward service's address that nobody can dial is refused with its place") {
  for (const std::string address : {"0.0.0.0:50061", "[::]:50061", "node7:0", "node7", ":50061"}) {
    INFO(address);
    const absl::Status status =
        Read(std::string(kModel) + "rollout: {context_tokens_max: 512, reward_address: \"" + address +
             "\"}\n")
            .status();
    CHECK_THAT(
        std::string(status.message()),
        Catch::Contains("run.yaml:4:") && Catch::Contains("rollout.reward_address: address \"" + address));
  }
}

TEST_CASE("a context without room for a prompt beside the trainer's answers is refused") {
  const auto fault = [](const std::string& rest) {
    return std::string(Read(std::string(kModel) + rest).status().message());
  };
  const std::string sampling = "trainer: {num_threads: 1, grpo: {sampling: {answer_tokens_max: 256}}}\n";
  CHECK(fault(sampling + "rollout: {context_tokens_max: 257}\n").empty());
  const std::string full = fault(sampling + "rollout: {context_tokens_max: 256}\n");
  CHECK_THAT(full, Catch::Contains("run.yaml:5:31: rollout.context_tokens_max: is 256") &&
                       Catch::Contains("trainer.grpo.sampling.answer_tokens_max is 256"));
  CHECK_THAT(fault("trainer: {num_threads: 1}\nrollout: {context_tokens_max: 100}\n"),
             Catch::Contains("answer_tokens_max is 512"));
  CHECK(fault("rollout: {context_tokens_max: 100}\n").empty());  // another trainer's answers may be short
}

TEST_CASE("faults of all sections that the worker reads are reported at once, and no other's") {
  const std::string faults(
      Read("model: {vocab_size: x, hidden_size: 8}\ndata: {tokenizer: nowhere, tran: x}\n"
           "rollout: {reward_channel: {token_file: none.token}}\n")
          .status()
          .message());
  CHECK_THAT(faults, Catch::Contains("run.yaml:1:21: model.vocab_size: must be an integer"));
  CHECK_THAT(faults, Catch::Contains("run.yaml:1:8: model.num_hidden_layers: is missing; it has no default"));
  CHECK_THAT(faults, Catch::Contains("run.yaml:2:19: data.tokenizer: there is no folder nowhere"));
  CHECK_THAT(faults, Catch::Contains("rollout.reward_channel.token_file: there is no file none.token"));
  CHECK_THAT(faults, !Catch::Contains("tran"));
  CHECK(
      Read(std::string(kModel) + "rollout: {context_tokens_max: 512, reward_channel: {authority: system}}\n")
          .ok());
}

TEST_CASE("the resolved section loads back") {
  const WorkerConfig config =
      Read(std::string(kModel), {"rollout.num_slots=5", "rollout.context_tokens_max=512"}).value();
  CHECK_THAT(config.resolved_yaml, !Catch::Contains("model"));
  CHECK(Read(kModel + config.resolved_yaml).value().num_slots == 5);
}

}  // namespace warpsmith
