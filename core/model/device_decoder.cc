#include "core/model/device_decoder.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_device.h"
#include "core/model/cuda_status.h"
#include "core/model/device_attention_cuda.h"
#include "core/model/device_memory.h"
#include "core/model/device_memory_plan.h"
#include "core/model/device_step_cuda.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/event_arrival_cuda.h"
#include "core/model/resident_memory_cuda.h"
#include "core/model/rotary_table.h"

namespace warpsmith {
namespace {

constexpr char kUser[] = "decoder on a GPU";  // in errors

absl::StatusOr<FreeMemory> FreeMemoryOf(int device) {
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  return FreeMemory{device, static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

DeviceScratch ScratchOf(const ModelConfig& config, const DeviceDecoderOptions& options) {
  return PlaceScratch(config, options, AttentionWorkspaceBytes(config, options));
}

// Bytes of weights and of one step. `config` is the shard's, here and below.
int64_t FixedBytes(const ModelConfig& config, const DeviceScratch& places, DeviceDtype dtype) {
  return WeightElements(ParameterLayout(config)) * ElementBytes(dtype) + places.bytes;
}

absl::Status CopyTable(const std::vector<float>& values, std::byte* to) {
  return CudaStatus(cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
                    "copy of rotary positions");
}

absl::Status FillRotaryTable(const ModelConfig& config, int64_t positions, std::byte* cosines,
                             std::byte* sines) {
  RotaryTable<float> table(config.head_dim, config.rope_theta, config.rope_scaling);
  table.Reserve(positions);
  const int64_t size = positions * config.head_dim / 2;
  RETURN_IF_ERROR(CopyTable({table.cosine(0), table.cosine(0) + size}, cosines));
  return CopyTable({table.sine(0), table.sine(0) + size}, sines);
}

// A query of `rows` rows, 1 or 2, all of token 0, in the first page: zero weights leave zeros there. What cannot run at
// all fails here. Steps of more rows use other kernels, which the first such step loads; a graph may not be captured
// before. A shard runs it alone, without the others' sums, so that none waits for another that cannot be made.
absl::Status RunOnce(const DeviceStepLauncher& launcher, int32_t rows) {
  const int32_t values[] = {0, rows, 0, 1};
  ASSIGN_OR_RETURN(const DeviceMemory memory, DeviceMemory::Zeros(sizeof(values)));
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpy(memory.get(), values, sizeof(values), cudaMemcpyHostToDevice), "cudaMemcpy"));
  const auto* const row_indptr = reinterpret_cast<const int32_t*>(memory.get());
  const int32_t* const counted = row_indptr + 2;  // {0, 1}
  ASSIGN_OR_RETURN(const DeviceMemory zeros, DeviceMemory::Zeros(sizeof(values)));
  const auto* const zero = reinterpret_cast<const int32_t*>(zeros.get());
  RETURN_IF_ERROR(launcher.Launch({.num_queries = 1,
                                   .num_rows = rows,
                                   .num_logits_rows = 1,
                                   .rows_of_query_max = rows,
                                   .row_indptr = row_indptr,
                                   .page_indptr = counted,
                                   .page_indices = zero,
                                   .token_ids = zero,
                                   .token_slots = zero,
                                   .last_tokens = zero,
                                   .positions = counted,
                                   .kv_entries = counted,
                                   .logits_rows = zero},
                                  nullptr));
  return CudaStatus(cudaDeviceSynchronize(), "the first step");
}

absl::Status AwaitStepsOn(int device) {
  return AwaitDevice(device, "the steps before new weights", absl::Now() + kShortWorkTimeout);
}

}  // namespace

struct DeviceDecoder::State {
  State(const ModelConfig& config, const DeviceDecoderOptions& options, DeviceWeights weights)
      : config(config), options(options), weights(std::move(weights)) {}

  ModelConfig config;
  DeviceDecoderOptions options;
  DeviceWeights weights;
  DeviceMemory scratch;
  std::unique_ptr<ResidentMemory> pages;
  std::unique_ptr<DeviceStepLauncher> launcher;
};

absl::StatusOr<std::unique_ptr<DeviceDecoder>> DeviceDecoder::Create(const ModelConfig& whole,
                                                                     const DeviceDecoderOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(CheckDeviceDecoderOptions(whole, options));
  RETURN_IF_ERROR(UseCudaDevice(options.device, kUser).status());
  const ModelConfig config = ShardConfig(whole, options.shard.count);
  const int64_t page_bytes = options.num_pages * PageBytes(config, options.page_tokens, options.dtype);
  const DeviceScratch places = ScratchOf(config, options);
  ASSIGN_OR_RETURN(const FreeMemory memory, FreeMemoryOf(options.device));
  RETURN_IF_ERROR(CheckFits("weights, pages and one step",
                            FixedBytes(config, places, options.dtype) + page_bytes, memory));

  ASSIGN_OR_RETURN(DeviceWeights weights,
                   DeviceWeights::Allocate(whole, options.device, options.shard, options.dtype));
  auto state = std::make_unique<State>(config, options, std::move(weights));
  ASSIGN_OR_RETURN(state->scratch, DeviceMemory::Zeros(places.bytes));
  std::byte* const scratch = state->scratch.get();
  RETURN_IF_ERROR(
      FillRotaryTable(config, options.context_tokens_max, scratch + places.cosines, scratch + places.sines));
  ASSIGN_OR_RETURN(state->pages, ResidentMemory::Reserve(options.device, page_bytes));
  // Before the pages, whose memory its measurements borrow.
  ASSIGN_OR_RETURN(state->launcher,
                   DeviceStepLauncher::Create(options, state->weights, places, scratch, state->pages->get()));
  RETURN_IF_ERROR(state->pages->Allocate());
  RETURN_IF_ERROR(RunOnce(*state->launcher, 1));
  if (options.rows_max > 1 && options.context_tokens_max > 1) RETURN_IF_ERROR(RunOnce(*state->launcher, 2));
  LogInfo(absl::StrFormat(
      "decoder on GPU %d in %s: %.2f GB of weights, %.2f GB of pages, %.2f GB for a step, in %.2f s",
      options.device, DtypeName(options.dtype),
      static_cast<double>(state->weights.size() * ElementBytes(options.dtype)) * 1e-9,
      static_cast<double>(page_bytes) * 1e-9, static_cast<double>(places.bytes) * 1e-9,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
  return std::unique_ptr<DeviceDecoder>(new DeviceDecoder(std::move(state)));
}

DeviceDecoder::DeviceDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}

DeviceDecoder::~DeviceDecoder() {
  cudaSetDevice(state_->options.device);
  cudaDeviceSynchronize();
}

absl::Status DeviceDecoder::LoadHuggingFace(const std::filesystem::path& directory) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(state_->options.device), "cudaSetDevice"));
  RETURN_IF_ERROR(AwaitStepsOn(state_->options.device));
  return state_->weights.LoadHuggingFace(directory);
}

absl::Status DeviceDecoder::SetParameters(const Parameters& parameters) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(state_->options.device), "cudaSetDevice"));
  RETURN_IF_ERROR(AwaitStepsOn(state_->options.device));
  return state_->weights.SetParameters(parameters);
}

absl::Status DeviceDecoder::FillRandom(uint64_t seed) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(state_->options.device), "cudaSetDevice"));
  RETURN_IF_ERROR(AwaitStepsOn(state_->options.device));
  return state_->weights.FillRandom(seed);
}

DeviceWeights& DeviceDecoder::weights() { return state_->weights; }

void DeviceDecoder::FreePages() {
  cudaSetDevice(state_->options.device);
  state_->pages->Free();
}

void DeviceDecoder::FreeWeights() {
  cudaSetDevice(state_->options.device);
  state_->weights.Free();
}

absl::Status DeviceDecoder::AllocateWeights() {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(state_->options.device), "cudaSetDevice"));
  if (state_->weights.resident()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FreeMemory memory, FreeMemoryOf(state_->options.device));
  RETURN_IF_ERROR(CheckFits("weights", state_->weights.size() * ElementBytes(state_->options.dtype), memory));
  return state_->weights.AllocateAgain();
}

absl::Status DeviceDecoder::AllocatePages() {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(state_->options.device), "cudaSetDevice"));
  if (state_->pages->resident()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FreeMemory memory, FreeMemoryOf(state_->options.device));
  const int64_t bytes = state_->options.num_pages *
                        PageBytes(state_->config, state_->options.page_tokens, state_->options.dtype);
  RETURN_IF_ERROR(CheckFits("pages", bytes, memory));
  return state_->pages->Allocate();
}

absl::Status DeviceDecoder::Launch(const DeviceStep& step, cudaStream_t stream) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(state_->options.device), "cudaSetDevice"));
  if (!state_->pages->resident() || !state_->weights.resident()) {
    return absl::InternalError(
        "decoder on a GPU: a step was launched without pages or weights: allocate them first");
  }
  if (!state_->options.shard.is_whole() && step.exchange == nullptr) {
    return absl::InternalError(
        "decoder on a GPU: a step of a shard was launched without an exchange of sums");
  }
  return state_->launcher->Launch(step, stream);
}

const float* DeviceDecoder::logits() const { return state_->launcher->logits(); }
int64_t DeviceDecoder::logits_stride() const {
  return LogitsStride(state_->config, state_->options.num_token_ids);
}

DeviceDtype DeviceDecoder::dtype() const { return state_->options.dtype; }
std::byte* DeviceDecoder::page_memory() { return state_->pages->get(); }
__nv_bfloat16* DeviceDecoder::pages() {
  WS_CHECK(dtype() == DeviceDtype::kBfloat16) << "the pages are " << DtypeName(dtype());
  return reinterpret_cast<__nv_bfloat16*>(page_memory());
}
int64_t DeviceDecoder::num_planes() const { return 2 * state_->config.num_hidden_layers; }
int64_t DeviceDecoder::plane_stride() const { return PlaneElements(state_->config, state_->options); }
int64_t DeviceDecoder::entry_size() const { return EntryElements(state_->config); }

int64_t DeviceDecoder::weight_bytes() const {
  const ParameterLayout& layout = state_->weights.layout();
  const int64_t head = logits_stride() * state_->config.hidden_size;
  const int64_t layers = state_->weights.buffer_offset(layout.final_buffer()) -
                         state_->weights.buffer_offset(layout.layer_buffer(0));
  return (layers + head + state_->config.hidden_size) * ElementBytes(dtype());
}

int64_t DeviceDecoder::entry_bytes() const { return num_planes() * entry_size() * ElementBytes(dtype()); }

absl::StatusOr<DecoderMemory> MeasureDecoderMemory(const ModelConfig& whole,
                                                   const DeviceDecoderOptions& options) {
  DeviceDecoderOptions sized = options;
  sized.num_pages = 1;
  RETURN_IF_ERROR(CheckDeviceDecoderOptions(whole, sized));
  RETURN_IF_ERROR(UseCudaDevice(options.device, kUser).status());
  const ModelConfig config = ShardConfig(whole, options.shard.count);
  ASSIGN_OR_RETURN(const FreeMemory memory, FreeMemoryOf(options.device));
  return DecoderMemory{
      .total_bytes = memory.total_bytes,
      .free_bytes = memory.free_bytes,
      .fixed_bytes = FixedBytes(config, ScratchOf(config, sized), sized.dtype) + kLoadedCodeBytes,
      .page_bytes = PageBytes(config, options.page_tokens, options.dtype)};
}

}  // namespace warpsmith
