// Shards of a decoder that take the same steps, a thread each. Torch is needed by whoever includes this.
#ifndef WARPSMITH_TESTS_SUPPORT_DEVICE_SHARDS_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_DEVICE_SHARDS_FIXTURE_H_

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/model/device_decoder.h"
#include "tests/support/device_decoder_fixture.h"

namespace warpsmith {

struct ShardedDevice {
  std::string name;
  ModelConfig config;
  int count = 1;
};

// Groups of 2 and 5 query heads, heads of 64 and 128, biases, tied and untied; the last in four shards.
inline std::vector<ShardedDevice> ShardedDevices() {
  ModelConfig qwen3 = DeviceConfig(4, 2, 128);
  qwen3.intermediate_size = 96;
  ModelConfig qwen2 = DeviceConfig(10, 2, 64);
  qwen2.intermediate_size = 96;
  qwen2.qkv_bias = true;
  qwen2.qk_norm = qwen2.tie_word_embeddings = false;
  ModelConfig wide = DeviceConfig(8, 4, 64);
  wide.intermediate_size = 128;
  return {{"Qwen3, 2", qwen3, 2}, {"Qwen2, 2", qwen2, 2}, {"Qwen3, 4", wide, 4}};
}

class DeviceShards {
 public:
  // Shard i lies on GPU devices[i], and `exchange_of(i)` is its exchange.
  DeviceShards(const ModelConfig& config, DeviceDecoderOptions options, const std::vector<int>& devices,
               std::function<PartialsExchange(int)> exchange_of)
      : options_(options),
        devices_(devices),
        exchange_of_(std::move(exchange_of)),
        meeting_(std::ssize(devices)) {
    for (int rank = 0; rank < std::ssize(devices); ++rank) {
      options.device = devices[rank];
      options.shard = {rank, static_cast<int>(devices.size())};
      absl::StatusOr<std::unique_ptr<DeviceDecoder>> decoder = DeviceDecoder::Create(config, options);
      WS_CHECK(decoder.ok()) << decoder.status().message();
      decoders_.push_back(*std::move(decoder));
    }
  }

  const std::vector<std::unique_ptr<DeviceDecoder>>& decoders() const { return decoders_; }

  void SetParameters(const Parameters& parameters) {
    for (const auto& decoder : decoders_) {
      const absl::Status status = decoder->SetParameters(parameters);
      WS_CHECK(status.ok()) << status.message();
    }
  }

  // The rows of logits of every shard, of steps on new sequences.
  std::vector<std::vector<std::vector<float>>> Run(const std::vector<std::vector<DeviceChunk>>& steps) {
    std::vector<std::vector<std::vector<float>>> logits(decoders_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < decoders_.size(); ++rank) {
      threads.emplace_back(
          [this, rank, &steps, &logits] { logits[rank] = RunOf(static_cast<int>(rank), steps); });
    }
    for (std::thread& thread : threads) thread.join();
    return logits;
  }

 private:
  // All memory is taken before the first step and freed behind the last: to take it may wait for a GPU whose kernel
  // waits for another.
  std::vector<std::vector<float>> RunOf(int rank, const std::vector<std::vector<DeviceChunk>>& steps) {
    WS_CHECK(cudaSetDevice(devices_[rank]) == cudaSuccess);
    const PartialsExchange exchange = exchange_of_(rank);
    DeviceSequences sequences(*decoders_[rank], options_);
    std::vector<std::unique_ptr<DeviceStepArrays>> plans;
    for (const std::vector<DeviceChunk>& step : steps) plans.push_back(sequences.Plan(step));
    meeting_.arrive_and_wait();
    std::vector<std::vector<float>> logits;
    for (const std::unique_ptr<DeviceStepArrays>& arrays : plans) {
      arrays->step.exchange = &exchange;
      const absl::Status status = decoders_[rank]->Launch(arrays->step, nullptr);
      WS_CHECK(status.ok()) << status.message();
      for (std::vector<float>& row : sequences.Logits(arrays->step.num_logits_rows))
        logits.push_back(std::move(row));
    }
    meeting_.arrive_and_wait();
    return logits;
  }

  const DeviceDecoderOptions options_;
  const std::vector<int> devices_;
  const std::function<PartialsExchange(int)> exchange_of_;
  std::barrier<> meeting_;
  std::vector<std::unique_ptr<DeviceDecoder>> decoders_;
};

// Prompts in chunks beside decoding sequences, of parts of `tokens`, at least 34 of them.
inline std::vector<std::vector<DeviceChunk>> ShardSteps(const std::vector<int32_t>& tokens) {
  const auto part = [&](int64_t begin, int64_t end) {
    return std::vector<int32_t>(tokens.begin() + begin, tokens.begin() + end);
  };
  return {{{0, part(0, 21)}, {1, part(5, 6)}},
          {{0, part(21, 22)}, {2, part(0, 33), false}, {1, part(6, 7)}},
          {{1, part(7, 8)}, {0, part(22, 23)}, {2, part(33, 34)}}};
}

// Errors against float64 of the logits of ShardSteps, of one shard and of the whole model; and between the two.
struct ShardErrors {
  RootMeanSquare shards, whole, difference;
};

inline ShardErrors MeasureShardErrors(const Parameters& parameters, const std::vector<int32_t>& tokens,
                                      const std::vector<std::vector<float>>& of_shards,
                                      const std::vector<std::vector<float>>& of_whole) {
  const std::vector<std::pair<int, int64_t>> places = {
      {0, 20}, {2, 21}, {5, 22}, {6, 33}};  // row of logits, position
  const at::Tensor exact = OperatorSequenceLogits(parameters.Clone(at::kDouble), tokens);
  ShardErrors errors;
  for (const auto& [row, position] : places) {
    const double* const right = exact.const_data_ptr<double>() + position * parameters.config().vocab_size;
    for (size_t i = 0; i < of_whole[row].size(); ++i) {
      errors.shards.Add(of_shards[row][i] - right[i]);
      errors.whole.Add(of_whole[row][i] - right[i]);
      errors.difference.Add(of_shards[row][i] - of_whole[row][i]);
    }
  }
  return errors;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_DEVICE_SHARDS_FIXTURE_H_
