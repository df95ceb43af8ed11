// Rates of a trainer's steps on a GPU: one side of tests/bench/trainer_gpu.py.
//
//   trainer_gpu_rates --shape JSON --lengths 4096,4096 [--steps N]
//
// Prints a JSON object a line for each setting: what is recomputed, and whether bits repeat. Every token is scored;
// norm and AdamW are part of a step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/model/training/training_cost.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {
namespace {

using Seconds = std::chrono::duration<double>;

ModelConfig ConfigOf(const nlohmann::json& shape) {
  return {.vocab_size = shape.at("vocab_size"),
          .hidden_size = shape.at("hidden_size"),
          .intermediate_size = shape.at("intermediate_size"),
          .num_hidden_layers = shape.at("num_hidden_layers"),
          .num_attention_heads = shape.at("num_attention_heads"),
          .num_key_value_heads = shape.at("num_key_value_heads"),
          .head_dim = shape.at("head_dim"),
          .max_position_embeddings = 40960,
          .rope_theta = 1e6,
          .tie_word_embeddings = shape.at("tie_word_embeddings")};
}

// Fills matrices with values of deviation 0.02, and norms with 1. The values repeat, but at no row's length.
void FillWeights(ModelTrainer& trainer) {
  constexpr int64_t kBlock = 1'048'573;
  std::vector<float> block(kBlock);
  for (int64_t i = 0; i < kBlock; ++i) {
    block[i] = static_cast<float>(0.02 * std::sqrt(12.0) * (UniformDouble(3, i) - 0.5));
  }
  const std::vector<float> ones(1 << 16, 1.0f);
  for (int buffer = 0; buffer < trainer.layout().num_buffers(); ++buffer) {
    for (const ParameterEntry& entry : trainer.layout().buffers()[buffer].entries) {
      const std::vector<float>& values = entry.decays ? block : ones;
      for (int64_t done = 0; done < entry.size();) {
        const int64_t size = std::min<int64_t>(entry.size() - done, std::ssize(values));
        WS_CHECK(trainer
                     .Write(StateSet::kWeights, buffer, entry.offset + done,
                            {values.data(), static_cast<size_t>(size)})
                     .ok());
        done += size;
      }
    }
  }
}

ScoredBatch BatchOf(const ModelConfig& config, const std::vector<int64_t>& lengths) {
  ScoredBatch batch;
  uint64_t draw = 0;
  for (const int64_t length : lengths) {
    std::vector<int64_t> tokens(length);
    for (int64_t& token : tokens) token = static_cast<int64_t>(UniformWord(7, draw++) % config.vocab_size);
    batch.packed.Append(tokens);
    for (int64_t i = 0; i < length; ++i) {
      batch.targets.push_back(static_cast<int64_t>(UniformWord(8, draw++) % config.vocab_size));
    }
  }
  return batch;
}

nlohmann::json Measure(TrainingGpu& gpu, const ModelConfig& config, const std::vector<int64_t>& lengths,
                       Recomputation recomputation, bool deterministic, int num_steps) {
  constexpr int kWarmUps = 3;
  const ScoredBatch batch = BatchOf(config, lengths);
  const auto num_tokens = static_cast<double>(batch.targets.size());
  auto made = gpu.MakeTrainer(ParameterLayout(config), {.recomputation = recomputation}, deterministic);
  WS_CHECK(made.ok()) << made.status();
  ModelTrainer& trainer = **made;
  FillWeights(trainer);
  double loss = 0, norm = 0, seconds = 0;
  for (int step = -kWarmUps; step < num_steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    loss = 0;
    const absl::Status status = trainer.Accumulate(batch, [&](const RowScores& scores) {
      for (const double log_prob : scores.log_probs) loss -= log_prob / num_tokens;
      return std::vector<double>(scores.log_probs.size(), -1.0 / num_tokens);
    });
    WS_CHECK(status.ok()) << status;
    norm = trainer.Step(1e-6).value();
    if (step >= 0) seconds += Seconds(std::chrono::steady_clock::now() - begin).count() / num_steps;
  }
  WS_CHECK(std::isfinite(loss + norm)) << "loss " << loss << ", norm " << norm;
  double flops = 0;
  for (const int64_t length : lengths) flops += TrainingFlops(config, length, length);
  return {{"recomputed", std::string(NameOf(recomputation))},
          {"deterministic", deterministic},
          {"milliseconds", 1e3 * seconds},
          {"tokens_per_second", num_tokens / seconds},
          {"mfu", flops / seconds / gpu.peak_flops()},
          {"gigabytes", static_cast<double>(gpu.total_memory() - gpu.FreeMemory().value()) * 1e-9},
          {"loss", loss},
          {"norm", norm}};
}

int Run(int argc, char** argv) {
  std::string shape;
  std::vector<int64_t> lengths = {4096, 4096};
  int num_steps = 12;
  CLI::App app("rates of training steps on a GPU");
  app.add_option("--shape", shape, "sizes of the model as JSON")->required();
  app.add_option("--lengths", lengths, "tokens of each sequence")->delimiter(',');
  app.add_option("--steps", num_steps, "steps that are timed");
  CLI11_PARSE(app, argc, argv);
  const ModelConfig config = ConfigOf(nlohmann::json::parse(shape));
  const auto gpu = TrainingGpu::Open(0);
  WS_CHECK(gpu.ok()) << gpu.status();
  for (const bool deterministic : {false, true}) {
    for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kLayer}) {
      std::cout << Measure(**gpu, config, lengths, recomputation, deterministic, num_steps) << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) { return warpsmith::Run(argc, argv); }
