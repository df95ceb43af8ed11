#include "rollout_workers/device/step_launch_cuda.h"

#include <cstring>
#include <memory>
#include <vector>

#include "core/kernels/token_sampling.h"
#include "core/model/handles_cuda.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kPageTokens = 16;
constexpr int64_t kNumTokenIds = 1000;  // of 1,024 rows of the head

std::unique_ptr<DeviceDecoder> MakeDecoder() {
  auto decoder = DeviceDecoder::Create(SmallDeviceModel(), {.num_pages = 4,
                                                            .page_tokens = kPageTokens,
                                                            .rows_max = 8,
                                                            .logits_rows_max = 2,
                                                            .context_tokens_max = 32,
                                                            .num_token_ids = kNumTokenIds,
                                                            .row_buckets = {8}});
  INFO(decoder.status().message());
  REQUIRE(decoder.ok());
  REQUIRE((*decoder)->FillRandom(1).ok());
  return *std::move(decoder);
}

// Arrays that the device reads where they are: unified memory.
template <typename T>
T* Managed(const std::vector<T>& values) {
  T* array = nullptr;
  REQUIRE(cudaMallocManaged(reinterpret_cast<void**>(&array), values.size() * sizeof(T)) == cudaSuccess);
  std::memcpy(array, values.data(), values.size() * sizeof(T));
  return array;
}

// One prompt of three tokens in page 2, two samples of its last row, into slots 1 and 0.
device::StepMemory OnePrompt() {
  return {.arrays = {.seeds = Managed<uint64_t>({11, 12}),
                     .draws = Managed<uint64_t>({0, 3}),
                     .top_ps = Managed<double>({1, 1}),
                     .min_ps = Managed<double>({0, 0}),
                     .temperatures = Managed<float>({1, 0.5}),
                     .top_ks = Managed<int32_t>({0, 0}),
                     .sample_rows = Managed<int32_t>({0, 0}),
                     .sample_slots = Managed<int32_t>({1, 0}),
                     .logits_rows = Managed<int32_t>({2}),
                     .row_indptr = Managed<int32_t>({0, 3}),
                     .page_indptr = Managed<int32_t>({0, 1}),
                     .token_ids = Managed<int32_t>({5, 6, 7}),
                     .token_slots = Managed<int32_t>({0, 0, 0}),
                     .positions = Managed<int32_t>({0, 1, 2}),
                     .kv_entries = Managed<int32_t>({32, 33, 34}),
                     .page_copies = Managed<int32_t>({2, 3, 3}),
                     .page_indices = Managed<int32_t>({2})},
          .last_tokens = Managed<int32_t>({-7, -7, -7}),
          .result_token_ids = Managed<int32_t>({-7, -7}),
          .result_log_probs = Managed<float>({1, 1})};
}

}  // namespace

TEST_CASE("a launch samples what the reference samples from the logits that it leaves") {
  const std::unique_ptr<DeviceDecoder> decoder = MakeDecoder();
  const CudaStream stream = CreateStream().value();
  const device::StepMemory memory = OnePrompt();
  const device::StepShape shape{
      .num_queries = 1, .num_rows = 3, .num_logits_rows = 1, .num_samples = 2, .rows_of_query_max = 3};
  REQUIRE(device::LaunchLayersAndSamples(shape, kNumTokenIds, memory, *decoder, stream.get()).ok());
  REQUIRE(cudaStreamSynchronize(stream.get()) == cudaSuccess);

  std::vector<float> logits(static_cast<size_t>(decoder->logits_stride()));
  REQUIRE(cudaMemcpy(logits.data(), decoder->logits(), logits.size() * sizeof(float),
                     cudaMemcpyDeviceToHost) == cudaSuccess);
  std::vector<int32_t> last_tokens(3, -7), token_ids(2);
  std::vector<float> log_probs(2);
  TokenSamplesReference({.num_samples = 2,
                         .num_token_ids = kNumTokenIds,
                         .logits_stride = decoder->logits_stride(),
                         .logits = logits.data(),
                         .logits_rows = memory.arrays.sample_rows,
                         .seeds = memory.arrays.seeds,
                         .draws = memory.arrays.draws,
                         .temperatures = memory.arrays.temperatures,
                         .slots = memory.arrays.sample_slots,
                         .last_tokens = last_tokens.data(),
                         .token_ids = token_ids.data(),
                         .log_probs = log_probs.data()});
  for (int i = 0; i < 2; ++i) {
    CHECK(memory.result_token_ids[i] == token_ids[i]);
    CHECK(memory.result_log_probs[i] == Approx(log_probs[i]).margin(1e-4));
  }
  for (int slot = 0; slot < 3; ++slot) CHECK(memory.last_tokens[slot] == last_tokens[slot]);
}

TEST_CASE("copies of a plan copy pages of all planes, and none of it is a launch of nothing") {
  const std::unique_ptr<DeviceDecoder> decoder = MakeDecoder();
  const CudaStream stream = CreateStream().value();
  const device::StepMemory memory = OnePrompt();
  const device::StepShape shape{
      .num_queries = 1, .num_rows = 3, .num_logits_rows = 1, .num_samples = 2, .rows_of_query_max = 3};
  REQUIRE(device::LaunchLayersAndSamples(shape, kNumTokenIds, memory, *decoder, stream.get()).ok());
  REQUIRE(device::LaunchCopies(0, kPageTokens, memory, *decoder, stream.get()).ok());
  REQUIRE(device::LaunchCopies(1, kPageTokens, memory, *decoder, stream.get()).ok());
  REQUIRE(cudaStreamSynchronize(stream.get()) == cudaSuccess);
  const auto entry = static_cast<size_t>(decoder->entry_size());
  std::vector<uint16_t> source(3 * entry), destination(3 * entry);
  const size_t bytes = source.size() * sizeof(uint16_t);
  for (int64_t plane = 0; plane < decoder->num_planes(); ++plane) {
    const __nv_bfloat16* const pages = decoder->pages() + plane * decoder->plane_stride();
    const int64_t page_size = kPageTokens * decoder->entry_size();
    REQUIRE(cudaMemcpy(source.data(), pages + 2 * page_size, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    REQUIRE(cudaMemcpy(destination.data(), pages + 3 * page_size, bytes, cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    CHECK(source == destination);
    CHECK(source != std::vector<uint16_t>(source.size()));
  }
}

}  // namespace warpsmith
