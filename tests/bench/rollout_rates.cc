// Rates of the rollout engine, sampler and scheduler included: the other side of model_peer.py, with the same
// arguments and the same line protocol. Groups of eight share a prompt. `decode`: plain sampling, the prompts
// not timed, as the peer has it; `truncated`: with top-k 20 and top-p 0.95; `whole`: answer tokens over all
// time, prompts included.
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/synchronization/blocking_counter.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/touch_constants.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weights.h"

namespace warpsmith {
namespace {

constexpr int kGroupSize = 8;

struct Load {
  int batch, prompt, steps;
};

class Rates {
 public:
  Rates(const ModelConfig& config, Load load, int threads)
      : config_(config),
        load_(load),
        engine_(config,
                {.num_slots = load.batch,
                 .context_tokens_max = load.prompt + load.steps + 1,
                 .scheduler = {.prefill_tokens_max = load.batch * load.prompt},
                 .stop_token_ids = {},
                 .num_threads = threads},
                {.on_sample = [this](FinishedSample) { pending_->DecrementCount(); },
                 .on_failure = [](FailedJob job) { WS_CHECK(false) << job.status.ToString(); }}) {
    WS_CHECK(engine_.SwapWeights(RandomWeights(config, 1), absl::InfiniteFuture()).ok());
  }

  // Without the time of the first token, which is that of the prompts.
  double Decode(const SamplingParameters& sampling) {
    const double first = Seconds(sampling, 1);
    return load_.batch * load_.steps / (Seconds(sampling, load_.steps + 1) - first);
  }
  double Whole() { return load_.batch * (load_.steps + 1) / Seconds({}, load_.steps + 1); }

 private:
  double Seconds(SamplingParameters sampling, int answer_tokens) {
    sampling.answer_tokens_max = answer_tokens;
    GenerationJob job{.id = ++last_job_, .sampling = sampling};
    for (int g = 0; g < load_.batch / kGroupSize; ++g) {
      GenerationGroup group{.task_index = g};
      for (int i = 0; i < load_.prompt; ++i) {
        group.prompt_token_ids.push_back(static_cast<int32_t>(UniformWord(g, i) % config_.vocab_size));
      }
      for (int s = 0; s < kGroupSize; ++s) {
        group.samples.push_back({.sample_index = s, .seed = UniformWord(last_job_, g * kGroupSize + s)});
      }
      job.groups.push_back(std::move(group));
    }
    absl::BlockingCounter pending(load_.batch);
    pending_ = &pending;
    const auto begin = std::chrono::steady_clock::now();
    WS_CHECK(engine_.Submit(std::move(job)).ok());
    pending.Wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const ModelConfig config_;
  const Load load_;
  int64_t last_job_ = 0;
  absl::BlockingCounter* pending_ = nullptr;  // set while no sample is under way
  Engine engine_;
};

ModelConfig ParseShape(const std::string& text) {
  const auto shape = nlohmann::json::parse(text);
  ModelConfig config;
  config.vocab_size = shape["vocab_size"];
  config.hidden_size = shape["hidden_size"];
  config.intermediate_size = shape["intermediate_size"];
  config.num_hidden_layers = shape["num_hidden_layers"];
  config.num_attention_heads = shape["num_attention_heads"];
  config.num_key_value_heads = shape["num_key_value_heads"];
  config.head_dim = shape["head_dim"];
  config.tie_word_embeddings = true;
  return config;
}

int Main(const std::string& shape, const std::string& load_text, int threads) {
  const auto load = nlohmann::json::parse(load_text);
  Rates rates(ParseShape(shape), {load["decode_batch"], load["decode_prompt"], load["decode_steps"]},
              threads);
  for (std::string line; std::getline(std::cin, line);) {
    double rate = 0;
    if (line == "decode") rate = rates.Decode({});
    if (line == "truncated") rate = rates.Decode({.top_p = 0.95, .top_k = 20});
    if (line == "whole") rate = rates.Whole();
    std::cout << nlohmann::json{{"tokens_per_second", rate}} << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  warpsmith::TouchConstants(warpsmith::kTorchLibrary);
  return warpsmith::Main(flags["--shape"], flags["--load"], std::stoi(flags["--threads"]));
}
