// Shards of a decoder on a GPU made of the host, whose exchange is a meeting of their threads.
#include <algorithm>
#include <barrier>
#include <cstdio>

#include "core/checkpoint/hugging_face_directory.h"
#include "core/model/hugging_face_weights.h"
#include "tests/support/catch.h"
#include "tests/support/device_shards_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// Each copies the others' rows while all wait.
class HostExchange {
 public:
  explicit HostExchange(int count) : partials_(count), meeting_(count) {}

  PartialsExchange Of(int rank) {
    return [this, rank](std::byte* partials, int64_t bytes, cudaStream_t) {
      partials_[rank] = partials;
      meeting_.arrive_and_wait();
      for (int other = 0; other < std::ssize(partials_); ++other) {
        if (other == rank) continue;
        std::copy_n(partials_[other] + other * bytes, bytes, partials + other * bytes);
      }
      meeting_.arrive_and_wait();
      return absl::OkStatus();
    };
  }

 private:
  std::vector<std::byte*> partials_;
  std::barrier<> meeting_;
};

std::unique_ptr<DeviceShards> Shards(const ModelConfig& config, const DeviceDecoderOptions& options,
                                     int count) {
  const auto exchange = std::make_shared<HostExchange>(count);
  return std::make_unique<DeviceShards>(config, options, std::vector<int>(count),
                                        [exchange](int rank) { return exchange->Of(rank); });
}

}  // namespace

// A shard's part of a sum is rounded before the parts are added, which a whole model's is not; both round the
// residual, which weighs more. 1.4 allows for chance.
TEST_CASE("shards with the sums of each other are as near to float64 as the whole model") {
  const DeviceDtype dtype = GENERATE(DeviceDtype::kBfloat16, DeviceDtype::kFloat16);
  for (const auto& [name, config, count] : ShardedDevices()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 64}}) {
      INFO(name << " in " << DtypeName(dtype));
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets, dtype);
      const std::vector<int32_t> tokens = DeviceTokens(config, 40, 3);
      const auto shards = Shards(config, options, count), whole = Shards(config, options, 1);
      shards->SetParameters(parameters);
      whole->SetParameters(parameters);
      const auto sharded = shards->Run(ShardSteps(tokens)), expected = whole->Run(ShardSteps(tokens));
      for (int rank = 1; rank < count; ++rank) CHECK(sharded[rank] == sharded[0]);  // to the bit
      const ShardErrors errors = MeasureShardErrors(parameters, tokens, sharded[0], expected[0]);
      std::printf("%s in %s: error of shards %.2e, of the whole model %.2e, between them %.2e\n",
                  name.c_str(), DtypeName(dtype), errors.shards.value(), errors.whole.value(),
                  errors.difference.value());
      CHECK(errors.shards.value() <= 1.4 * errors.whole.value());
      CHECK(errors.difference.value() > 0);
    }
  }
}

TEST_CASE("shards in float32 have the whole model's logits within a ten-thousandth") {
  for (const auto& [name, config, count] : ShardedDevices()) {
    INFO(name);
    const Parameters parameters = DeviceParameters(config, 5);
    const DeviceDecoderOptions options = SmallOptions({64}, DeviceDtype::kFloat32);
    const std::vector<int32_t> tokens = DeviceTokens(config, 40, 3);
    const auto shards = Shards(config, options, count), whole = Shards(config, options, 1);
    shards->SetParameters(parameters);
    whole->SetParameters(parameters);
    const auto sharded = shards->Run(ShardSteps(tokens)), expected = whole->Run(ShardSteps(tokens));
    for (int rank = 1; rank < count; ++rank) CHECK(sharded[rank] == sharded[0]);  // to the bit
    const ShardErrors errors = MeasureShardErrors(parameters, tokens, sharded[0], expected[0]);
    CHECK(errors.shards.value() <= 1e-5);  // of logits around 1
    CHECK(errors.difference.value() <= 1e-5);
  }
}

TEST_CASE("shards that load a checkpoint are those that take its parameters") {
  for (const auto& [name, config, count] : ShardedDevices()) {
    INFO(name);
    const Parameters parameters = DeviceParameters(config, 9);
    const auto steps = ShardSteps(DeviceTokens(config, 40, 3));
    const auto shards = Shards(config, SmallOptions({64}), count);
    shards->SetParameters(parameters);
    const auto expected = shards->Run(steps);
    shards->SetParameters(DeviceParameters(config, 10));
    CHECK(shards->Run(steps) != expected);
    const TemporaryDirectory folder;
    REQUIRE(
        WriteHuggingFaceDirectory(
            folder.path() / "model",
            {.files = {}, .tensors = HuggingFaceTensors(parameters.layout(), {}), .shard_bytes_max = 20000},
            HuggingFaceSource(parameters))
            .ok());
    for (const auto& decoder : shards->decoders()) {
      const absl::Status status = decoder->LoadHuggingFace(folder.path() / "model");
      INFO(status.message());
      REQUIRE(status.ok());
    }
    CHECK(shards->Run(steps) == expected);
  }
}

TEST_CASE("a shard takes its part of the memory, and no step without the others") {
  const ShardedDevice sharded = ShardedDevices()[0];
  const auto shards = Shards(sharded.config, SmallOptions({64}), 2),
             whole = Shards(sharded.config, SmallOptions({64}), 1);
  DeviceDecoder &shard = *shards->decoders()[1], &all = *whole->decoders()[0];
  CHECK(2 * shard.entry_bytes() == all.entry_bytes());
  CHECK(static_cast<double>(shard.weight_bytes()) < 0.6 * static_cast<double>(all.weight_bytes()));
  const absl::Status alone = shard.Launch({.num_queries = 1, .num_rows = 1}, nullptr);
  CHECK(alone.code() == absl::StatusCode::kInternal);
  CHECK(shard.SetParameters(DeviceParameters(DeviceConfig(8, 4, 64), 1)).code() ==
        absl::StatusCode::kInvalidArgument);
  DeviceDecoderOptions options = SmallOptions({64});
  options.shard = {0, 3};
  CHECK(DeviceDecoder::Create(sharded.config, options).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace warpsmith
