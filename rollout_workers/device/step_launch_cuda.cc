#include "rollout_workers/device/step_launch_cuda.h"

#include "core/base/status_macros.h"
#include "core/kernels/page_copy_cuda.h"
#include "core/kernels/token_sampling_cuda.h"
#include "core/model/cuda_status.h"

namespace warpsmith::device {
namespace {

// The arrays of a plan and of the kernel have one layout.
static_assert(sizeof(PageToCopy) == 3 * sizeof(int32_t));

DeviceStep ToDeviceStep(const StepShape& shape, const StepMemory& memory) {
  const StepArrays& arrays = memory.arrays;
  return {.num_queries = shape.num_queries,
          .num_rows = shape.num_rows,
          .num_logits_rows = shape.num_logits_rows,
          .rows_of_query_max = shape.rows_of_query_max,
          .row_indptr = arrays.row_indptr,
          .page_indptr = arrays.page_indptr,
          .page_indices = arrays.page_indices,
          .token_ids = arrays.token_ids,
          .token_slots = arrays.token_slots,
          .last_tokens = memory.last_tokens,
          .positions = arrays.positions,
          .kv_entries = arrays.kv_entries,
          .logits_rows = arrays.logits_rows};
}

absl::Status LaunchSamples(const StepShape& shape, int64_t num_token_ids, const StepMemory& memory,
                           const DeviceDecoder& decoder, cudaStream_t stream) {
  const StepArrays& arrays = memory.arrays;
  const TokenSamples samples{.num_samples = shape.num_samples,
                             .num_token_ids = num_token_ids,
                             .logits_stride = decoder.logits_stride(),
                             .logits = decoder.logits(),
                             .logits_rows = arrays.sample_rows,
                             .seeds = arrays.seeds,
                             .draws = arrays.draws,
                             .temperatures = arrays.temperatures,
                             .slots = arrays.sample_slots,
                             .last_tokens = memory.last_tokens,
                             .token_ids = memory.result_token_ids,
                             .log_probs = memory.result_log_probs,
                             .top_ks = arrays.top_ks,
                             .top_ps = arrays.top_ps,
                             .min_ps = arrays.min_ps};
  return CudaStatus(LaunchTokenSamples(samples, stream, KernelStart::kBesideFormer), "Sampling");
}

}  // namespace

absl::Status LaunchCopies(int64_t num_copies, int64_t page_tokens, const StepMemory& memory,
                          DeviceDecoder& decoder, cudaStream_t stream) {
  if (num_copies == 0) return absl::OkStatus();
  // What is copied has no arithmetic: a float32 goes as two elements of half its size.
  constexpr auto kCopiedBytes = static_cast<int64_t>(sizeof(__nv_bfloat16));
  const int64_t copied_of_element = ElementBytes(decoder.dtype()) / kCopiedBytes;
  const PageCopies<__nv_bfloat16> copies{
      .num_copies = num_copies,
      .copies = reinterpret_cast<const PageToCopy*>(memory.arrays.page_copies),
      .num_planes = decoder.num_planes(),
      .plane_stride = decoder.plane_stride() * copied_of_element,
      .page_tokens = page_tokens,
      .entry_size = decoder.entry_size() * copied_of_element,
      .pages = reinterpret_cast<__nv_bfloat16*>(decoder.page_memory())};
  return CudaStatus(LaunchPageCopies(copies, stream), "Copying pages");
}

absl::Status LaunchLayersAndSamples(const StepShape& shape, int64_t num_token_ids, const StepMemory& memory,
                                    DeviceDecoder& decoder, cudaStream_t stream, const StepPeers* peers) {
  const bool samples = peers == nullptr || peers->samples;
  DeviceStep step = ToDeviceStep(shape, memory);
  if (!samples) step.num_logits_rows = 0;
  if (peers != nullptr) step.exchange = &peers->exchange;
  RETURN_IF_ERROR(decoder.Launch(step, stream));
  if (shape.num_samples == 0) return absl::OkStatus();  // chunks that end before their prompts do
  if (samples) RETURN_IF_ERROR(LaunchSamples(shape, num_token_ids, memory, decoder, stream));
  return peers == nullptr ? absl::OkStatus() : peers->share_tokens(memory.last_tokens, stream);
}

}  // namespace warpsmith::device
