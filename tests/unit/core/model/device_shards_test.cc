// Shards of a decoder on a GPU made of the host, a thread each, whose exchange is a meeting of the threads.
#include <array>
#include <barrier>
#include <thread>

#include "core/checkpoint/hugging_face_directory.h"
#include "core/model/device_decoder.h"
#include "core/model/hugging_face_weights.h"
#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// Each copies the others' rows while all wait.
class HostExchange {
 public:
  explicit HostExchange(int count) : partials_(count), meeting_(count) {}

  PartialsExchange Of(int rank) {
    return [this, rank](__nv_bfloat16* partials, int64_t count, cudaStream_t) {
      partials_[rank] = partials;
      meeting_.arrive_and_wait();
      for (int other = 0; other < std::ssize(partials_); ++other) {
        if (other == rank) continue;
        std::copy_n(partials_[other] + other * count, count, partials + other * count);
      }
      meeting_.arrive_and_wait();
      return absl::OkStatus();
    };
  }

 private:
  std::vector<__nv_bfloat16*> partials_;
  std::barrier<> meeting_;
};

// Shards of one decoder that take the same steps.
class HostShards {
 public:
  HostShards(const ModelConfig& config, DeviceDecoderOptions options, int count)
      : options_(options), exchange_(count) {
    for (int rank = 0; rank < count; ++rank) {
      options.shard = {rank, count};
      absl::StatusOr<std::unique_ptr<DeviceDecoder>> decoder = DeviceDecoder::Create(config, options);
      INFO(decoder.status().message());
      REQUIRE(decoder.ok());
      decoders_.push_back(*std::move(decoder));
    }
  }

  const std::vector<std::unique_ptr<DeviceDecoder>>& decoders() const { return decoders_; }

  // The logits of every shard of steps on new sequences.
  std::vector<std::vector<std::vector<float>>> Run(const std::vector<std::vector<DeviceChunk>>& steps) {
    std::vector<std::vector<std::vector<float>>> logits(decoders_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < decoders_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const PartialsExchange exchange = exchange_.Of(static_cast<int>(rank));
        DeviceSequences sequences(*decoders_[rank], options_);
        for (const std::vector<DeviceChunk>& step : steps) {
          const std::unique_ptr<DeviceStepArrays> arrays = sequences.Plan(step);
          arrays->step.exchange = &exchange;
          const absl::Status status = decoders_[rank]->Launch(arrays->step, nullptr);
          WS_CHECK(status.ok()) << status.message();
          for (std::vector<float>& row : sequences.Logits(arrays->step.num_logits_rows)) {
            logits[rank].push_back(std::move(row));
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return logits;
  }

 private:
  const DeviceDecoderOptions options_;
  HostExchange exchange_;
  std::vector<std::unique_ptr<DeviceDecoder>> decoders_;
};

struct ShardedConfig {
  std::string name;
  ModelConfig config;
  int count;
};

std::vector<ShardedConfig> ShardedConfigs() {
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

std::vector<std::vector<DeviceChunk>> Steps(const std::vector<int32_t>& tokens) {
  const auto part = [&](int64_t begin, int64_t end) {
    return std::vector<int32_t>(tokens.begin() + begin, tokens.begin() + end);
  };
  return {{{0, part(0, 21)}, {1, part(5, 6)}},
          {{0, part(21, 22)}, {2, part(0, 33), false}, {1, part(6, 7)}},
          {{1, part(7, 8)}, {0, part(22, 23)}, {2, part(33, 34)}}};
}

}  // namespace

// A shard's part of a sum is rounded before the parts are added, so the error against float64 may grow a little over
// that of the whole model: by less than a tenth here, where both round the residual, which weighs more.
TEST_CASE("shards with the sums of each other are as near to float64 as the whole model") {
  for (const auto& [name, config, count] : ShardedConfigs()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 64}}) {
      INFO(name);
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets);
      const std::vector<int32_t> tokens = DeviceTokens(config, 40, 3);
      HostShards shards(config, options, count);
      for (const auto& decoder : shards.decoders()) REQUIRE(decoder->SetParameters(parameters).ok());
      const auto sharded = shards.Run(Steps(tokens));
      HostShards whole(config, options, 1);
      REQUIRE(whole.decoders()[0]->SetParameters(parameters).ok());
      const auto expected = whole.Run(Steps(tokens))[0];
      for (int rank = 1; rank < count; ++rank) CHECK(sharded[rank] == sharded[0]);  // to the bit

      const at::Tensor exact = OperatorSequenceLogits(parameters.Clone(at::kDouble), tokens);
      RootMeanSquare of_shards, of_whole, difference;
      const std::array<std::pair<int, int64_t>, 4> places = {
          std::pair{0, 20}, {2, 21}, {5, 22}, {6, 33}};  // row of logits, position in `tokens`
      for (const auto& [row, position] : places) {
        const double* const right = exact.const_data_ptr<double>() + position * config.vocab_size;
        for (size_t i = 0; i < expected[row].size(); ++i) {
          of_shards.Add(sharded[0][row][i] - right[i]);
          of_whole.Add(expected[row][i] - right[i]);
          difference.Add(sharded[0][row][i] - expected[row][i]);
        }
      }
      std::printf("%s: error of shards %.2e, of the whole model %.2e, between them %.2e\n", name.c_str(),
                  of_shards.value(), of_whole.value(), difference.value());
      CHECK(of_shards.value() <= 1.25 * of_whole.value());
      CHECK(difference.value() > 0);
    }
  }
}

TEST_CASE("shards that load a checkpoint are those that take its parameters") {
  for (const auto& [name, config, count] : ShardedConfigs()) {
    INFO(name);
    const Parameters parameters = DeviceParameters(config, 9);
    const auto steps = Steps(DeviceTokens(config, 40, 3));
    HostShards shards(config, SmallOptions({64}), count);
    for (const auto& decoder : shards.decoders()) REQUIRE(decoder->SetParameters(parameters).ok());
    const auto expected = shards.Run(steps);
    for (const auto& decoder : shards.decoders()) {
      REQUIRE(decoder->SetParameters(DeviceParameters(config, 10)).ok());
    }
    CHECK(shards.Run(steps) != expected);
    const TemporaryDirectory folder;
    REQUIRE(
        WriteHuggingFaceDirectory(
            folder.path() / "model",
            {.files = {}, .tensors = HuggingFaceTensors(parameters.layout(), {}), .shard_bytes_max = 20000},
            HuggingFaceSource(parameters))
            .ok());
    for (const auto& decoder : shards.decoders()) {
      const absl::Status status = decoder->LoadHuggingFace(folder.path() / "model");
      INFO(status.message());
      REQUIRE(status.ok());
    }
    CHECK(shards.Run(steps) == expected);
  }
}

TEST_CASE("a shard takes its part of the memory, and no step without the others") {
  const ShardedConfig sharded = ShardedConfigs()[0];
  HostShards shards(sharded.config, SmallOptions({64}), 2), whole(sharded.config, SmallOptions({64}), 1);
  DeviceDecoder &shard = *shards.decoders()[1], &all = *whole.decoders()[0];
  CHECK(2 * shard.entry_bytes() == all.entry_bytes());
  CHECK(shard.weight_bytes() < 0.6 * static_cast<double>(all.weight_bytes()));
  const absl::Status alone = shard.Launch({.num_queries = 1, .num_rows = 1}, nullptr);
  CHECK(alone.code() == absl::StatusCode::kInternal);
  CHECK(shard.SetParameters(DeviceParameters(DeviceConfig(8, 4, 64), 1)).code() ==
        absl::StatusCode::kInvalidArgument);
  DeviceDecoderOptions options = SmallOptions({64});
  options.shard = {0, 3};
  CHECK(DeviceDecoder::Create(sharded.config, options).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace warpsmith
