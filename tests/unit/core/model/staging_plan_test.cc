#include "core/model/staging_plan.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "core/kernels/bfloat16.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

// A checkpoint in memory, one view a tensor of the layout.
struct Checkpoint {
  Checkpoint(const Parameters& parameters, TensorType type) {
    const at::ScalarType dtype = type == TensorType::kF32    ? at::kFloat
                                 : type == TensorType::kBF16 ? at::kBFloat16
                                                             : at::kHalf;
    for (const HfTensorLayout& tensor : parameters.layout().hf_tensors()) {
      tensors.push_back(parameters.HfTensor(tensor, dtype).contiguous());
      owned.push_back({.info = {.name = tensor.name, .type = type, .shape = tensor.shape},
                       .bytes = {static_cast<const std::byte*>(tensors.back().const_data_ptr()),
                                 static_cast<size_t>(tensors.back().nbytes())}});
    }
    for (const TensorView& view : owned) views.push_back(&view);
  }

  std::vector<at::Tensor> tensors;
  std::vector<TensorView> owned;
  std::vector<const TensorView*> views;
};

// Distinct values everywhere, none of which bfloat16 has exactly.
Parameters Distinct(const ModelConfig& config) {
  Parameters parameters{ParameterLayout(config)};
  for (const HfTensorLayout& tensor : parameters.layout().hf_tensors()) {
    for (const CopyRun& run : tensor.runs) {
      float* const to = parameters.buffer(tensor.buffer).mutable_data_ptr<float>() + run.buffer_offset;
      for (int64_t i = 0; i < run.length; ++i) to[i] = 1.0f + static_cast<float>(run.hf_offset + i) * 0.0007f;
    }
  }
  return parameters;
}

// `type...`: of the elements, where they have 16 bits.
template <typename Element, typename... Type>
std::vector<Element> Upload(const ParameterLayout& layout, const std::vector<const TensorView*>& views,
                            int64_t elements_max, Type... type) {
  std::vector<Element> device(BufferOffsets(layout).back(), 0xFFFF);
  std::vector<Element> staging(elements_max, 0xABCD);
  for (const StagingChunk& chunk : PlanStaging(layout, layout.hf_tensors(), elements_max)) {
    FillChunk(chunk, views, type..., staging.data());
    std::copy(staging.begin(), staging.begin() + chunk.length, device.begin() + chunk.offset);
  }
  return device;
}

// What Torch rounds the parameters to, buffer after buffer.
std::vector<uint16_t> RoundedByTorch(const Parameters& parameters, at::ScalarType through,
                                     at::ScalarType to) {
  std::vector<uint16_t> bits;
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    const at::Tensor rounded = parameters.buffer(i).to(through).to(to);
    const auto* const from = static_cast<const uint16_t*>(rounded.const_data_ptr());
    bits.insert(bits.end(), from, from + rounded.numel());
  }
  return bits;
}

at::ScalarType ScalarTypeOf(TensorType type) {
  if (type == TensorType::kF16) return at::kHalf;
  return type == TensorType::kBF16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace

TEST_CASE(
    "chunks of any size carry every tensor to its place, rounded as Torch rounds, and padding as zeros") {
  for (const auto& [name, config] : FamilyConfigs()) {
    const Parameters parameters = Distinct(config);
    for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
      const Checkpoint checkpoint(parameters, type);
      for (const TensorType stored : {TensorType::kBF16, TensorType::kF16}) {
        const std::vector<uint16_t> expected =
            RoundedByTorch(parameters, ScalarTypeOf(type), ScalarTypeOf(stored));
        for (const int64_t elements_max : {97, 1024, 1 << 20}) {
          INFO(name << " " << TensorTypeName(type) << " as " << TensorTypeName(stored) << " in chunks of "
                    << elements_max);
          CHECK((Upload<uint16_t>(parameters.layout(), checkpoint.views, elements_max, stored) == expected));
        }
      }
    }
  }
}

TEST_CASE("in float32 every tensor arrives with all its bits, whatever type the checkpoint has") {
  for (const auto& [name, config] : FamilyConfigs()) {
    const Parameters parameters = Distinct(config);
    for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
      std::vector<float> expected;
      for (int i = 0; i < parameters.num_buffers(); ++i) {
        const at::Tensor buffer = parameters.buffer(i).to(ScalarTypeOf(type)).to(at::kFloat);
        expected.insert(expected.end(), buffer.const_data_ptr<float>(),
                        buffer.const_data_ptr<float>() + buffer.numel());
      }
      const Checkpoint checkpoint(parameters, type);
      for (const int64_t elements_max : {97, 1 << 20}) {
        INFO(name << " " << TensorTypeName(type) << " in chunks of " << elements_max);
        CHECK((Upload<float>(parameters.layout(), checkpoint.views, elements_max) == expected));
      }
    }
  }
}

TEST_CASE("chunks cover all buffers once, in order, and none crosses from one into the next") {
  const ParameterLayout layout(OddConfig());
  const std::vector<int64_t> begins = BufferOffsets(layout);
  for (const int64_t elements_max : {100, 1024, 5000, 1 << 20}) {
    int64_t next = 0;
    for (const StagingChunk& chunk : CutIntoChunks(layout, elements_max)) {
      CHECK(chunk.offset == next);
      CHECK((chunk.length >= 1 && chunk.length <= elements_max));
      const auto end = std::upper_bound(begins.begin(), begins.end(), chunk.offset);
      CHECK(chunk.offset + chunk.length <= *end);
      next = chunk.offset + chunk.length;
    }
    CHECK(next == begins.back());
  }
}

TEST_CASE("a place among the buffers tells its tensor, and padding tells none") {
  const ParameterLayout layout(OddConfig());
  const std::vector<int64_t> begins = BufferOffsets(layout);
  for (int tensor = 0; tensor < std::ssize(layout.hf_tensors()); ++tensor) {
    const HfTensorLayout& placed = layout.hf_tensors()[tensor];
    for (const CopyRun& run : placed.runs) {
      CHECK(TensorAt(layout, begins[placed.buffer] + run.buffer_offset) == tensor);
      CHECK(TensorAt(layout, begins[placed.buffer] + run.buffer_offset + run.length - 1) == tensor);
    }
  }
  CHECK(TensorAt(layout, begins[1] - 1) == -1);
}

TEST_CASE("every half is the float that Torch makes of it, and what is not finite stays so") {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float expected = static_cast<float>(c10::Half(static_cast<uint16_t>(half), c10::Half::from_bits()));
    const float found = FloatOfFloat16(static_cast<uint16_t>(half));
    const bool same = std::isnan(expected)
                          ? std::isnan(found)
                          : found == expected && std::signbit(found) == std::signbit(expected);
    if (!same) FAIL("half " << half << " is " << found);
  }
  for (const float infinite : {INFINITY, -INFINITY, NAN, std::numeric_limits<float>::max()}) {
    CHECK((Bfloat16Bits(infinite) & 0x7F80) == 0x7F80);
    CHECK((Float16Bits(infinite) & 0x7C00) == 0x7C00);
  }
}

TEST_CASE(
    "float32 becomes the half that Torch makes of it: every half, ties between two, and what lies beside "
    "ties") {
  const auto check = [](float value) {
    const uint16_t expected = c10::Half(value).x, found = Float16Bits(value);
    if (expected != found && !std::isnan(value)) FAIL(value << " is " << found << ", not " << expected);
  };
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    const float here = FloatOfFloat16(static_cast<uint16_t>(half));
    const float next = half + 1 < 0x7C00 ? FloatOfFloat16(static_cast<uint16_t>(half + 1)) : 65536.0f;
    const float tie = here + (next - here) / 2;
    for (const float value : {here, tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e6f)}) {
      check(value);
      check(-value);
    }
  }
  check(1e-30f);
  check(1e30f);
}

TEST_CASE("the rate of filling chunks, one thread") {
  ModelConfig config = DemoConfig();
  config.hidden_size = 1024;
  config.intermediate_size = 3072;
  config.vocab_size = 20000;
  const Parameters parameters{ParameterLayout(config)};
  for (const TensorType type : {TensorType::kBF16, TensorType::kF32, TensorType::kF16}) {
    const Checkpoint checkpoint(parameters, type);
    const ParameterLayout& layout = parameters.layout();
    const std::vector<StagingChunk> chunks = PlanStaging(layout, layout.hf_tensors(), 2 << 20);
    std::vector<uint16_t> staging(2 << 20);
    const auto begin = std::chrono::steady_clock::now();
    int64_t elements = 0;
    for (const StagingChunk& chunk : chunks) {
      FillChunk(chunk, checkpoint.views, TensorType::kBF16, staging.data());
      elements += chunk.length;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("filling %.2f GB of bfloat16 from %s: %.2f GB/s a thread\n",
                static_cast<double>(elements) * 2e-9, std::string(TensorTypeName(type)).c_str(),
                static_cast<double>(elements) * 2e-9 / seconds);
  }
}

}  // namespace warpsmith
