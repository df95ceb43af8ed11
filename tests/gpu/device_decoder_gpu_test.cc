#include <cmath>
#include <cstdio>
#include <limits>

#include "core/model/device_weights_cuda.h"
#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"

namespace warpsmith {
namespace {

std::unique_ptr<DeviceDecoder> Decoder(const Parameters& parameters, const DeviceDecoderOptions& options) {
  absl::StatusOr<std::unique_ptr<DeviceDecoder>> decoder =
      DeviceDecoder::Create(parameters.config(), options);
  INFO(decoder.status().message());
  REQUIRE(decoder.ok());
  REQUIRE((*decoder)->SetParameters(parameters).ok());
  return *std::move(decoder);
}

std::vector<int32_t> Slice(const std::vector<int32_t>& tokens, int64_t begin, int64_t end) {
  return {tokens.begin() + begin, tokens.begin() + end};
}

}  // namespace

// The operators round to bfloat16 after every operation, the decoder only where it stores: before a product, after it,
// and the residual. So its error against float64 must not be larger than theirs; 1.25 allows for chance.
TEST_CASE("logits of prompts and decoded tokens are as near to float64 as the operators' in bfloat16") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 32, 64}}) {
      INFO(name << ", " << buckets.size() << " buckets");
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets);
      const std::unique_ptr<DeviceDecoder> decoder = Decoder(parameters, options);
      const DecoderErrors errors = MeasureErrors(*decoder, options, parameters);
      std::printf("%s, %zu buckets: error %.2e, that of operators in bfloat16 %.2e\n", name.c_str(),
                  buckets.size(), errors.device.value(), errors.operators.value());
      CHECK(errors.device.value() <= 1.25 * errors.operators.value());
    }
  }
}

// float16 has three bits more, so that the same steps err an eighth.
TEST_CASE("logits in float16 err at most a fifth of the operators' in bfloat16") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 32, 64}}) {
      INFO(name << ", " << buckets.size() << " buckets");
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets, DeviceDtype::kFloat16);
      const std::unique_ptr<DeviceDecoder> decoder = Decoder(parameters, options);
      const DecoderErrors errors = MeasureErrors(*decoder, options, parameters);
      std::printf("%s, %zu buckets, float16: error %.2e, that of operators in bfloat16 %.2e\n", name.c_str(),
                  buckets.size(), errors.device.value(), errors.operators.value());
      CHECK(errors.device.value() <= errors.operators.value() / 5);
    }
  }
}

TEST_CASE("with one bucket a prompt in chunks has the bits of the whole prompt") {
  const DeviceDtype dtype = GENERATE(DeviceDtype::kBfloat16, DeviceDtype::kFloat16);
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    INFO(name << " in " << DtypeName(dtype));
    const DeviceDecoderOptions options = SmallOptions({64}, dtype);
    const std::unique_ptr<DeviceDecoder> decoder = Decoder(DeviceParameters(config, 6), options);
    const std::vector<int32_t> tokens = DeviceTokens(config, 61, 3);
    const auto whole = DeviceSequences(*decoder, options).Run({{0, tokens}});
    for (const std::vector<int64_t>& cuts : std::vector<std::vector<int64_t>>{{1}, {16, 32}, {17, 18, 60}}) {
      DeviceSequences sequences(*decoder, options);
      int64_t begin = 0;
      for (const int64_t cut : cuts) {
        sequences.Run({{0, Slice(tokens, begin, cut), false}});
        begin = cut;
      }
      CHECK(sequences.Run({{0, Slice(tokens, begin, 61)}}) == whole);
    }
  }
}

TEST_CASE("with one bucket a sequence alone has the bits that it has among others") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    INFO(name);
    const DeviceDecoderOptions options = SmallOptions({64});
    const std::unique_ptr<DeviceDecoder> decoder = Decoder(DeviceParameters(config, 7), options);
    const std::vector<int32_t> tokens = DeviceTokens(config, 31, 4), others = DeviceTokens(config, 60, 5);
    DeviceSequences alone(*decoder, options);
    const auto prefilled = alone.Run({{0, Slice(tokens, 0, 30)}}),
               decoded = alone.Run({{0, Slice(tokens, 30, 31)}});
    DeviceSequences together(*decoder, options);
    together.Run({{1, Slice(others, 0, 20)}, {2, Slice(others, 0, 3)}});
    const auto all_prefilled = together.Run({{1, Slice(others, 20, 21)},
                                             {2, Slice(others, 3, 4)},
                                             {0, Slice(tokens, 0, 30)},
                                             {3, Slice(others, 0, 9)}});
    CHECK(all_prefilled[2] == prefilled[0]);
    const auto all_decoded =
        together.Run({{1, Slice(others, 21, 22)}, {0, Slice(tokens, 30, 31)}, {2, Slice(others, 4, 5)}});
    CHECK(all_decoded[1] == decoded[0]);
  }
}

TEST_CASE("a captured step gives the bits of a launched one, also after its pages were given back") {
  const NamedConfig named = DeviceFamilyConfigs()[0];
  const DeviceDecoderOptions options = SmallOptions({64});
  const std::unique_ptr<DeviceDecoder> decoder = Decoder(DeviceParameters(named.config, 8), options);
  const std::vector<int32_t> tokens = DeviceTokens(named.config, 41, 6);
  DeviceSequences first(*decoder, options), second(*decoder, options);
  first.Run({{0, Slice(tokens, 0, 40)}});
  const auto launched = first.Run({{0, Slice(tokens, 40, 41)}});

  second.Run({{0, Slice(tokens, 0, 40)}});
  const std::unique_ptr<DeviceStepArrays> arrays = second.Plan({{0, Slice(tokens, 40, 41)}});
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(decoder->Launch(arrays->step, stream).ok());
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
  for (int life = 0; life < 2; ++life) {
    if (life == 1) {
      decoder->FreePages();
      decoder->FreePages();
      CHECK(decoder->Launch(arrays->step, nullptr).code() == absl::StatusCode::kInternal);
      REQUIRE(decoder->AllocatePages().ok());
      REQUIRE(decoder->AllocatePages().ok());
      DeviceSequences(*decoder, options).Run({{0, Slice(tokens, 0, 40)}});
    }
    REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
    CHECK(second.Logits(1) == launched);
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_CASE("a step without rows does nothing, and one with too many is refused") {
  const NamedConfig named = DeviceFamilyConfigs()[0];
  const DeviceDecoderOptions options = SmallOptions({64});
  const std::unique_ptr<DeviceDecoder> decoder = Decoder(DeviceParameters(named.config, 8), options);
  CHECK(decoder->Launch({}, nullptr).ok());
  const absl::Status rows = decoder->Launch({.num_queries = 1, .num_rows = 65}, nullptr);
  CHECK(rows.code() == absl::StatusCode::kInternal);
  CHECK(std::string(rows.message()).find("65 rows") != std::string::npos);
  CHECK(decoder->Launch({.num_queries = 9, .num_rows = 9, .num_logits_rows = 9}, nullptr).code() ==
        absl::StatusCode::kInternal);
}

TEST_CASE("more memory than the GPU has free is refused, in GiB") {
  DeviceDecoderOptions options = SmallOptions({64});
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  options.num_pages = std::numeric_limits<int32_t>::max() / options.page_tokens;
  const absl::Status status = DeviceDecoder::Create(config, options).status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(status.message()).find("GiB free") != std::string::npos);
}

TEST_CASE("as many pages as are said to be free are created") {
  DeviceDecoderOptions options = SmallOptions({64});
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  const absl::StatusOr<DecoderMemory> memory = MeasureDecoderMemory(config, options);
  REQUIRE(memory.ok());
  CHECK(memory->free_bytes <= memory->total_bytes);
  options.num_pages = (memory->free_bytes - memory->fixed_bytes) / memory->page_bytes;
  CHECK(DeviceDecoder::Create(config, options).ok());
}

}  // namespace warpsmith
