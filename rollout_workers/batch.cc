#include "rollout_workers/batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "rollout_workers/cpu_batch.h"
#include "rollout_workers/device/open_cuda_step_device.h"
#include "rollout_workers/device/step_buckets.h"
#include "rollout_workers/paged_device_batch.h"

namespace warpsmith {
namespace {

paged::PagedBatchOptions PagedOptionsFrom(const ModelConfig& config, const EngineOptions& options) {
  const CudaPlacement& cuda = *options.cuda;
  return {.sequences_max = options.num_slots,
          .samples_max = options.samples_max,
          .context_tokens_max = static_cast<int>(options.context_tokens_max),
          .prefill_tokens_max = cuda.prefill_tokens_max,
          .decode_buckets =
              cuda.decode_buckets.empty() ? device::DecodeBuckets(options.num_slots) : cuda.decode_buckets,
          .stop_token_ids = options.stop_token_ids,
          .num_token_ids = static_cast<int32_t>(NumTokenIds(config, options.num_token_ids))};
}

device::CudaStepOptions StepOptionsFrom(const CudaPlacement& cuda, const paged::PagedBatchOptions& paged) {
  return {.devices = cuda.devices,
          .dtype = cuda.dtype,
          .memory_share = cuda.memory_share,
          .num_pages = cuda.num_pages,
          .page_tokens = paged.page_tokens,
          .sequences_max = paged.sequences_max,
          .prefill_tokens_max = paged.prefill_tokens_max,
          .context_tokens_max = paged.context_tokens_max,
          .decode_buckets = paged.decode_buckets,
          .num_token_ids = paged.num_token_ids,
          .batch_invariant = cuda.batch_invariant};
}

// Without turns an engine decodes all the same: a referee's times are then of a GPU that both use.
DeviceTurns TurnsOf(const EngineOptions& options) {
  if (!options.takes_turns) return {};
  absl::StatusOr<DeviceTurns> turns = device::OpenCudaTurns(options.cuda->devices);
  if (turns.ok()) return *std::move(turns);
  LogWarning(absl::StrCat("the engine takes no turns on ", device::CudaName(options.cuda->devices),
                          ", so what a referee times there meanwhile is wrong: ", turns.status().message()));
  return {};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Batch>> MakeBatch(const ModelConfig& config, const EngineOptions& options) {
  if (!options.cuda.has_value()) return std::make_unique<CpuBatch>(config, options);
  const paged::PagedBatchOptions paged = PagedOptionsFrom(config, options);
  ASSIGN_OR_RETURN(std::unique_ptr<device::StepDevice> device,
                   device::OpenCudaStepDevice(config, StepOptionsFrom(*options.cuda, paged)));
  ASSIGN_OR_RETURN(std::unique_ptr<PagedDeviceBatch> batch,
                   PagedDeviceBatch::Create(paged, std::move(device), TurnsOf(options)));
  return batch;
}

}  // namespace warpsmith
