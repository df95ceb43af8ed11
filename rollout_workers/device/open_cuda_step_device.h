// A StepDevice on a GPU, in a build with CUDA. Includes nothing of CUDA, so that every build can name it.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_OPEN_CUDA_STEP_DEVICE_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_OPEN_CUDA_STEP_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/device_turns.h"
#include "core/kernels/device_dtype.h"
#include "core/model/model_config.h"
#include "core/model/offered_memory.h"
#include "core/model/weight_source.h"
#include "rollout_workers/device/step_device.h"

namespace warpsmith::device {

struct CudaStepOptions {
  // As CUDA counts. Several: each holds a shard of the model and of every page, and they carry out each step together.
  std::vector<int> devices = {0};
  // Of weights, activations and pages; see DeviceDecoderOptions.
  DeviceDtype dtype = DeviceDtype::kBfloat16;
  // Of each GPU's memory, for weights, buffers and pages; see PagesWithinShare.
  double memory_share = 0.9;
  int num_pages = 0;  // over 0: so many, whatever the share
  int page_tokens = 16;
  // As PagedBatchOptions: they bound every plan.
  int sequences_max = 64;
  int prefill_tokens_max = 2048;
  int64_t context_tokens_max = 2048;
  std::vector<int> decode_buckets;
  // Ids that the tokenizer has; 0: the model's vocab_size.
  int64_t num_token_ids = 0;
  bool batch_invariant = true;  // not kept in float32
  // Longest wait for a step. One takes milliseconds, a long chunk of a prompt on a large model a second.
  absl::Duration step_timeout = absl::Seconds(60);
};

// "cuda:0,1".
inline std::string CudaName(const std::vector<int>& devices) {
  return absl::StrCat("cuda:", absl::StrJoin(devices, ","));
}

// Takes the GPUs' memory; no weights yet. UNIMPLEMENTED in a build without CUDA, saying how to make one;
// FAILED_PRECONDITION: no such GPU, its driver is too old, or two that cannot reach each other; INVALID_ARGUMENT: a GPU
// that is named twice, or a number of them that does not divide the model (CheckTensorShard); RESOURCE_EXHAUSTED: its
// memory does not hold the weights and one context; INTERNAL with CUDA's message.
absl::StatusOr<std::unique_ptr<StepDevice>> OpenCudaStepDevice(const ModelConfig& config,
                                                               const CudaStepOptions& options);

// Opens the turns on GPUs, which are counted as CUDA does. UNIMPLEMENTED in a build without CUDA; the errors
// of UseCudaDevice and of DeviceLease::Open.
absl::StatusOr<DeviceTurns> OpenCudaTurns(const std::vector<int>& devices);

// Weights in the memory of a GPU of this host, mapped for GPU `device` and checked. UNIMPLEMENTED likewise; otherwise
// the errors of MappedWeights::Open (core/model/mapped_weights_cuda.h). Any thread.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenCudaWeights(const ModelConfig& config,
                                                              const OfferedMemory& offered, int device,
                                                              absl::Time deadline);

// Weights that a process broadcasts, received for `devices`, which share a model where there are several. UNIMPLEMENTED
// likewise; otherwise the errors of ReceivedWeights::Receive (core/model/received_weights_cuda.h). Any thread.
absl::StatusOr<std::unique_ptr<WeightSource>> ReceiveCudaWeights(const ModelConfig& config,
                                                                 OfferedBroadcast offered,
                                                                 const std::vector<int>& devices,
                                                                 absl::Time deadline);

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_OPEN_CUDA_STEP_DEVICE_H_
