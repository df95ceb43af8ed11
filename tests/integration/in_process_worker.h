// A rollout worker behind its door in this process, for tests. The model is a few thousand random parameters.
#ifndef WARPSMITH_TESTS_INTEGRATION_IN_PROCESS_WORKER_H_
#define WARPSMITH_TESTS_INTEGRATION_IN_PROCESS_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "prompting/prompts.h"
#include "rollout_workers/rollout_service.h"
#include "tests/support/catch.h"
#include "tests/support/in_process_server.h"
#include "tests/support/weights_file.h"

namespace warpsmith {

inline ModelConfig TinyModel(int64_t vocab_size) {
  return {.vocab_size = vocab_size,
          .hidden_size = 16,
          .intermediate_size = 16,
          .num_hidden_layers = 1,
          .num_attention_heads = 2,
          .num_key_value_heads = 1,
          .head_dim = 8,
          .max_position_embeddings = 256,
          .tie_word_embeddings = true};
}

using BatchMaker = std::function<std::unique_ptr<Batch>(const ModelConfig&, const EngineOptions&)>;

// Serves version 0 from the start. `grader` must outlive this.
class InProcessWorker {
 public:
  explicit InProcessWorker(
      v1::RewardService::Service* grader,
      WorkerOptions options = {.table = {.num_idle_max = 4}, .num_requests_max = 6},
      const BatchMaker& make_batch =
          [](const ModelConfig& config, const EngineOptions& options) {
            return MakeBatch(config, options).value();
          })
      : grader_server_(grader), options_(std::move(options)), make_batch_(make_batch) {
    LoadedWeights weights = RandomWeights(config_, 1);
    REQUIRE(worker_.engine().SwapWeights(std::move(weights), absl::Now() + absl::Seconds(60)).ok());
    service_.OnStateChange([this](RolloutService::State state) { state_ = state; });
  }

  std::unique_ptr<v1::RolloutService::Stub> Dial() const {
    return v1::RolloutService::NewStub(server_.channel());
  }
  const ModelConfig& config() const { return config_; }
  RolloutService::State state() const { return state_; }

 private:
  const InProcessServer grader_server_;
  const WorkerOptions options_;
  const BatchMaker make_batch_;
  const Prompts prompts_ = Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", "").value();
  const ModelConfig config_ = TinyModel(prompts_.tokenizer().vocab_size());
  std::atomic<RolloutService::State> state_{RolloutService::State::kWithoutWeights};
  const EngineOptions engine_options_{.num_slots = 8,
                                      .context_tokens_max = 256,
                                      .stop_token_ids = prompts_.stop_token_ids(),
                                      .num_threads = 2};
  Worker worker_{config_,
                 engine_options_,
                 make_batch_(config_, engine_options_),
                 options_,
                 &prompts_,
                 grader_server_.channel(),
                 "in process",
                 {.in_flight_max = 4, .attempt_timeout = absl::Seconds(60)}};
  WeightsSwitch weights_{config_, &worker_.engine()};
  RolloutService service_{&worker_, &weights_, {}};
  const InProcessServer server_{&service_};
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_INTEGRATION_IN_PROCESS_WORKER_H_
