// Rates of core/model: the other side of model_peer.py, with the same arguments and the same line protocol.
// `ceiling` in place of `decode` or `train` measures the product kernel alone, on matrices that stay in the
// cache, in GFLOP/s.
#include <ATen/Parallel.h>
#include <ATen/ops/mean.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/touch_constants.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/model/decoder.h"
#include "core/model/parameters.h"
#include "core/model/training/training_model.h"

namespace warpsmith {
namespace {

struct Load {
  int decode_batch, decode_prompt, decode_steps, train_batch, train_length;
};

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<int64_t> Tokens(const ModelConfig& config, int64_t count, uint64_t seed) {
  std::vector<int64_t> tokens(count);
  for (int64_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<int64_t>(UniformWord(seed, i) % static_cast<uint64_t>(config.vocab_size));
  }
  return tokens;
}

class Rates {
 public:
  Rates(const ModelConfig& config, Load load, int threads)
      : config_(config),
        load_(load),
        pool_(threads),
        parameters_(ParameterLayout(config)),
        model_(*TrainingModel::Create(config, Backend::kKernels, {.pool = &pool_})),
        decoder_(*Decoder::Create(config, Backend::kKernels, {.pool = &pool_})),
        cache_(decoder_.MakeCache(load.decode_batch, load.decode_prompt + load.decode_steps)) {
    parameters_.InitRandom(1);
    WS_CHECK(decoder_.SetParameters(parameters_).ok());
    parameters_.RequireGrad(true);
  }

  double Decode() {
    std::vector<StepSequence> sequences(load_.decode_batch);
    for (int slot = 0; slot < load_.decode_batch; ++slot) {
      const std::vector<int64_t> prompt = Tokens(config_, load_.decode_prompt, slot);
      sequences[slot] = {slot, 0, {prompt.begin(), prompt.end()}};
    }
    Advance(sequences);
    const double seconds = Seconds([&] {
      for (int step = 0; step < load_.decode_steps; ++step) Advance(sequences);
    });
    return load_.decode_batch * load_.decode_steps / seconds;
  }

  double Train() {
    ScoredBatch batch;
    for (int b = 0; b < load_.train_batch; ++b) {
      const std::vector<int64_t> tokens = Tokens(config_, load_.train_length, 1000 + b);
      batch.packed.Append(tokens);
      batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
      batch.targets.push_back(-1);
    }
    const size_t num_rows = batch.targets.size();
    parameters_.ZeroGrad();
    const double seconds = Seconds([&] {
      const auto mean = [&](const RowScores&) {
        return std::vector<double>(num_rows, 1.0 / static_cast<double>(num_rows));
      };
      WS_CHECK(model_.Accumulate(parameters_, batch, mean).ok());
    });
    return static_cast<double>(num_rows) / seconds;
  }

  double Ceiling() {
    constexpr int64_t kRows = 48, kDepth = 256, kRepeats = 4000;
    const int threads = pool_.num_threads();
    std::vector<std::vector<float>> memory(threads,
                                           std::vector<float>(kDepth * (kRows + kPanelColumns) + kRows * 64));
    const double seconds = Seconds([&] {
      pool_.Run(threads, [&](int64_t task, int) {
        Product<float> p;
        p.rows = kRows;
        p.columns = kPanelColumns;
        p.depth = kDepth;
        p.a = memory[task].data();
        p.a_row_stride = kDepth;
        p.b = p.a + kRows * kDepth;
        p.b_depth_stride = kPanelColumns;
        p.c = memory[task].data() + kDepth * (kRows + kPanelColumns);
        p.c_row_stride = kPanelColumns;
        for (int64_t i = 0; i < kRepeats; ++i) Kernels<float>().multiply(p);
      });
    });
    return 2e-9 * kRows * kDepth * kPanelColumns * kRepeats * threads / seconds;
  }

 private:
  // One step; `sequences` become their next, greedy tokens.
  void Advance(std::vector<StepSequence>& sequences) {
    const at::Tensor logits = decoder_.Step(sequences, cache_).value();
    const float* row = logits.const_data_ptr<float>();
    for (StepSequence& sequence : sequences) {
      sequence.first_position += static_cast<int64_t>(sequence.token_ids.size());
      sequence.token_ids = {static_cast<int32_t>(std::max_element(row, row + config_.vocab_size) - row)};
      row += config_.vocab_size;
    }
  }

  const ModelConfig config_;
  const Load load_;
  ThreadPool pool_;
  Parameters parameters_;
  TrainingModel model_;
  Decoder decoder_;
  KvCache cache_;
};

int Main(const std::string& shape_text, const std::string& load_text, int threads) {
  const auto shape = nlohmann::json::parse(shape_text), load = nlohmann::json::parse(load_text);
  ModelConfig config;
  config.vocab_size = shape["vocab_size"];
  config.hidden_size = shape["hidden_size"];
  config.intermediate_size = shape["intermediate_size"];
  config.num_hidden_layers = shape["num_hidden_layers"];
  config.num_attention_heads = shape["num_attention_heads"];
  config.num_key_value_heads = shape["num_key_value_heads"];
  config.head_dim = shape["head_dim"];
  config.tie_word_embeddings = true;
  at::set_num_threads(1);  // the kernels have threads of their own
  Rates rates(config,
              {load["decode_batch"], load["decode_prompt"], load["decode_steps"], load["train_batch"],
               load["train_length"]},
              threads);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "ceiling") {
      std::cout << nlohmann::json{{"gflops", rates.Ceiling()}} << std::endl;
    } else {
      const double rate = line == "decode" ? rates.Decode() : rates.Train();
      std::cout << nlohmann::json{{"tokens_per_second", rate}} << std::endl;
    }
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
