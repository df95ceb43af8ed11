// Where an engine computes: on the CPU, on one GPU, or on several together.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PLACEMENT_H_
#define WARPSMITH_ROLLOUT_WORKERS_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernels/device_dtype.h"

namespace warpsmith {

// GPUs, and how they are used.
struct CudaPlacement {
  // As CUDA counts. Several share one model: see CudaStepOptions.
  std::vector<int> devices = {0};
  // Of weights, activations, keys and values; see DeviceDecoderOptions.
  DeviceDtype dtype = DeviceDtype::kBfloat16;
  // Share of each GPU's memory for weights, buffers and pages of the KV cache: as many pages as then fit, at most twice
  // what all slots can fill. What other processes hold counts as taken from this share.
  double memory_share = 0.9;
  // Pages instead of those that memory_share gives; 0: by the share.
  int num_pages = 0;
  // Prompt tokens that one step computes beside the tokens that it decodes.
  int prefill_tokens_max = 2048;
  // Batch sizes of which each gets a CUDA graph, ascending, the last at most num_slots. Empty: DecodeBuckets.
  std::vector<int> decode_buckets;
  // Whether a sample's bits do not depend on what decodes beside it: all products then share one algorithm. Not kept in
  // float32.
  bool batch_invariant = true;
};

// Nothing of "cpu"; GPUs of "cuda" (the first), "cuda:N", "cuda:N,M" or "cuda:N-M" (all from N to M). `dtype` is
// "bfloat16", "float16", "float32" or "auto": bfloat16 on GPUs, float32 on the CPU, which has no other.
// INVALID_ARGUMENT for any other text, for a GPU that is named twice, and for the first two on the CPU.
absl::StatusOr<std::optional<CudaPlacement>> ParsePlacement(std::string_view device,
                                                            std::string_view dtype = "auto");

// "DEVICE [DTYPE [SHARE]]", as in "cuda:0 float16 0.6": ParsePlacement of the first two, and memory_share, from 0.01 to
// 1. INVALID_ARGUMENT also for more words, and for a share of another form or on the CPU.
absl::StatusOr<std::optional<CudaPlacement>> ParsePlacementWords(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_PLACEMENT_H_
