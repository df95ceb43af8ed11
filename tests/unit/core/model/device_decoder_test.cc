// The decoder's own work, on a GPU made of the host: which kernel gets which memory, in which order. Kernels and bits
// are tested by tests/gpu.
#include "core/model/device_decoder.h"

#include <cstring>

#include "core/checkpoint/hugging_face_directory.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/hugging_face_checks.h"
#include "core/model/hugging_face_weights.h"
#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"
#include "tests/support/host_gpu_faults.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

std::unique_ptr<DeviceDecoder> Decoder(const ModelConfig& config, const DeviceDecoderOptions& options) {
  absl::StatusOr<std::unique_ptr<DeviceDecoder>> decoder = DeviceDecoder::Create(config, options);
  INFO(decoder.status().message());
  REQUIRE(decoder.ok());
  return *std::move(decoder);
}

void Export(const std::filesystem::path& directory, const Parameters& parameters,
            TensorType type = TensorType::kF32) {
  TensorTypes types;
  for (const HfTensorLayout& tensor : parameters.layout().hf_tensors()) types[tensor.name] = type;
  REQUIRE(
      WriteHuggingFaceDirectory(
          directory,
          {.files = {}, .tensors = HuggingFaceTensors(parameters.layout(), types), .shard_bytes_max = 20000},
          HuggingFaceSource(parameters))
          .ok());
}

}  // namespace

// Kernels as exact as these round only where the decoder stores.
TEST_CASE("logits of every architecture are nearer to float64 than the operators' in bfloat16") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    INFO(name);
    const Parameters parameters = DeviceParameters(config, 5);
    const DeviceDecoderOptions options = SmallOptions({1, 4, 64});
    const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, options);
    REQUIRE(decoder->SetParameters(parameters).ok());
    const DecoderErrors errors = MeasureErrors(*decoder, options, parameters);
    std::printf("%s: error %.2e, that of operators in bfloat16 %.2e\n", name.c_str(), errors.device.value(),
                errors.operators.value());
    CHECK(errors.device.value() <= errors.operators.value());
    CHECK(errors.device.value() > 0);
  }
}

// float16 has three bits more, so that its errors are an eighth: the same steps, rounded elsewhere.
TEST_CASE("logits in float16 err at most a fifth of the operators' in bfloat16, of every architecture") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 64}}) {
      INFO(name);
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets, DeviceDtype::kFloat16);
      const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, options);
      REQUIRE(decoder->SetParameters(parameters).ok());
      const DecoderErrors errors = MeasureErrors(*decoder, options, parameters);
      std::printf("%s in float16: error %.2e, that of operators in bfloat16 %.2e\n", name.c_str(),
                  errors.device.value(), errors.operators.value());
      CHECK(errors.device.value() <= errors.operators.value() / 5);
      CHECK(errors.device.value() > 0);
    }
  }
}

TEST_CASE(
    "a float16 checkpoint has all its bits on a GPU in float16, and what is too large for it is refused") {
  const ModelConfig config = DeviceFamilyConfigs()[2].config;
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(5);
  const Parameters halves = parameters.Clone(at::kHalf);
  const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, SmallOptions({64}, DeviceDtype::kFloat16));
  const TemporaryDirectory folder;
  Export(folder.path() / "model", parameters, TensorType::kF16);
  CHECK(DtypeOfCheckpoint(folder.path() / "model") == DeviceDtype::kFloat16);
  for (const bool from_files : {false, true}) {
    REQUIRE((from_files ? decoder->LoadHuggingFace(folder.path() / "model") : decoder->SetParameters(halves))
                .ok());
    const DeviceWeights& weights = decoder->weights();
    for (int i = 0; i < halves.num_buffers(); ++i) {
      CHECK(std::memcmp(halves.BufferBytes(i).data(), weights.bits() + weights.buffer_offset(i),
                        halves.BufferBytes(i).size()) == 0);
    }
    REQUIRE(decoder->SetParameters(DeviceParameters(config, 9)).ok());
  }
  parameters.buffer(0).mutable_data_ptr<float>()[0] = 7e4f;
  const absl::Status status = decoder->SetParameters(parameters);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains("not finite"));
}

TEST_CASE("a checkpoint of mixed types, of others than F16, or of none is stored as bfloat16") {
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  const TemporaryDirectory folder;
  CHECK(DtypeOfCheckpoint(folder.path() / "nowhere") == DeviceDtype::kBfloat16);
  for (const TensorType type : {TensorType::kF32, TensorType::kBF16}) {
    const std::filesystem::path path = folder.path() / std::string(TensorTypeName(type));
    Export(path, DeviceParameters(config, 1), type);
    CHECK(DtypeOfCheckpoint(path) == DeviceDtype::kBfloat16);
  }
}

TEST_CASE("logits in float32 are those of float64 within a ten-thousandth, of every architecture") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 64}}) {
      INFO(name);
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets, DeviceDtype::kFloat32);
      const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, options);
      REQUIRE(decoder->SetParameters(parameters).ok());
      const DecoderErrors errors = MeasureErrors(*decoder, options, parameters);
      std::printf("%s in float32: largest error %.1e of logits of %.1e\n", name.c_str(), errors.device_max,
                  errors.exact.value());
      CHECK(errors.device_max <= 1e-4 * errors.exact.value());
    }
  }
}

TEST_CASE("weights in float32 have all their bits, from parameters and from a Hugging Face directory") {
  const ModelConfig config = DeviceFamilyConfigs()[2].config;
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(5);  // values that bfloat16 has not
  const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, SmallOptions({64}, DeviceDtype::kFloat32));
  const TemporaryDirectory folder;
  Export(folder.path() / "model", parameters);
  for (const bool from_files : {false, true}) {
    REQUIRE(
        (from_files ? decoder->LoadHuggingFace(folder.path() / "model") : decoder->SetParameters(parameters))
            .ok());
    const DeviceWeights& weights = decoder->weights();
    for (int i = 0; i < parameters.num_buffers(); ++i) {
      const at::Tensor buffer = parameters.buffer(i);
      const float* const expected = buffer.const_data_ptr<float>();
      CHECK(std::equal(expected, expected + buffer.numel(),
                       weights.BaseAs<float>() + weights.buffer_offset(i)));
    }
    REQUIRE(decoder->SetParameters(DeviceParameters(config, 9).Clone(at::kBFloat16)).ok());
  }
}

TEST_CASE("weights of a Hugging Face directory give the logits of the same parameters") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    INFO(name);
    const Parameters parameters = DeviceParameters(config, 9);
    const DeviceDecoderOptions options = SmallOptions({64});
    const std::vector<int32_t> tokens = DeviceTokens(config, 20, 3);
    const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, options);
    REQUIRE(decoder->SetParameters(parameters).ok());
    const auto expected = DeviceSequences(*decoder, options).Run({{0, tokens}});
    REQUIRE(decoder->SetParameters(DeviceParameters(config, 10)).ok());
    CHECK(DeviceSequences(*decoder, options).Run({{0, tokens}}) != expected);
    const TemporaryDirectory folder;
    Export(folder.path() / "model", parameters);
    const absl::Status status = decoder->LoadHuggingFace(folder.path() / "model");
    INFO(status.message());
    REQUIRE(status.ok());
    CHECK(DeviceSequences(*decoder, options).Run({{0, tokens}}) == expected);
  }
}

TEST_CASE("pages that were given back hold nothing, and a step without them is refused") {
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  const DeviceDecoderOptions options = SmallOptions({64});
  const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, options);
  REQUIRE(decoder->SetParameters(DeviceParameters(config, 9)).ok());
  const std::vector<int32_t> tokens = DeviceTokens(config, 20, 3);
  const __nv_bfloat16* const pages = decoder->pages();
  const auto expected = DeviceSequences(*decoder, options).Run({{0, tokens}});
  decoder->FreePages();
  decoder->FreePages();
  CHECK(decoder->Launch({.num_queries = 1, .num_rows = 1}, nullptr).code() == absl::StatusCode::kInternal);
  REQUIRE(decoder->AllocatePages().ok());
  REQUIRE(decoder->AllocatePages().ok());
  CHECK(decoder->pages() == pages);
  CHECK(DeviceSequences(*decoder, options).Run({{0, tokens}}) == expected);
}

TEST_CASE("sizes say what a step reads") {
  ModelConfig config = DeviceFamilyConfigs()[0].config;
  const DeviceDecoderOptions options = SmallOptions({64});
  const std::unique_ptr<DeviceDecoder> decoder = Decoder(config, options);
  CHECK(decoder->logits_stride() == 112);  // 97 rounded up
  CHECK(decoder->num_planes() == 4);
  CHECK(decoder->entry_size() == 2 * 128);
  CHECK(decoder->plane_stride() == 40 * 16 * 2 * 128);
  CHECK(decoder->entry_bytes() == 4 * 256 * 2);
  const ParameterLayout layout(config);
  CHECK(decoder->weight_bytes() == 2 * (2 * layout.buffers()[1].size + 112 * 40 + 40));
}

TEST_CASE("in float32 weights and pages take twice the bytes") {
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  const std::unique_ptr<DeviceDecoder> halves = Decoder(config, SmallOptions({64})),
                                       floats = Decoder(config, SmallOptions({64}, DeviceDtype::kFloat32));
  CHECK(floats->dtype() == DeviceDtype::kFloat32);
  CHECK(floats->weight_bytes() == 2 * halves->weight_bytes());
  CHECK(floats->entry_bytes() == 2 * halves->entry_bytes());
  CHECK(floats->plane_stride() == halves->plane_stride());
  CHECK(floats->logits_stride() == halves->logits_stride());
}

TEST_CASE("a GPU that is not there, and more memory than there is, are refused with a way out") {
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  DeviceDecoderOptions options = SmallOptions({64});
  options.device = 3;
  const absl::Status absent = DeviceDecoder::Create(config, options).status();
  CHECK(absent.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(absent.message()) ==
        "decoder on a GPU: there is no GPU 3, for there are 1: name one from 0 on");
  options.device = 0;
  const DecoderMemory memory = MeasureDecoderMemory(config, options).value();
  CHECK(memory.fixed_bytes > int64_t{768} << 20);
  options.num_pages = memory.free_bytes / memory.page_bytes;
  CHECK(DeviceDecoder::Create(config, options).status().code() == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("a driver that is too old is refused by what it lacks, with the way out") {
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  HostFaults().driver_is_old = true;
  const absl::Status old = DeviceDecoder::Create(config, SmallOptions({64})).status();
  HostFaults().driver_is_old = false;
  CHECK(absl::IsFailedPrecondition(old));
  CHECK_THAT(std::string(old.message()), Catch::Contains("update its driver"));
  HostFaults().lacks_virtual_memory = true;
  const absl::Status older = DeviceDecoder::Create(config, SmallOptions({64})).status();
  HostFaults().lacks_virtual_memory = false;
  CHECK(absl::IsFailedPrecondition(older));
  CHECK_THAT(std::string(older.message()), Catch::Contains("cuMem") && Catch::Contains("update it"));
}

}  // namespace warpsmith
