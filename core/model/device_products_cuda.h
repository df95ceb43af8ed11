// What runs the products of a decoder's step on a GPU.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_PRODUCTS_CUDA_H_
#define WARPSMITH_CORE_MODEL_DEVICE_PRODUCTS_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernels/kernel_start.h"
#include "core/kernels/linear_cuda.h"
#include "core/model/device_memory.h"

namespace warpsmith {

// How the products of a step are chosen. Few proposals and runs, because the start of a worker waits for them: all
// shapes and buckets take a second or two.
inline constexpr LinearSearch kStepSearch = {.proposals_max = 4, .warm_ups = 1, .runs = 3};

// In float32 nothing is measured, so that runs repeat to the bit.
inline constexpr LinearSearch kFirstProposal = {.proposals_max = 4, .warm_ups = 0, .runs = 0};
template <typename T>
inline constexpr LinearSearch kStepSearchOf = std::is_same_v<T, float> ? kFirstProposal : kStepSearch;

// Whether products of few rows of T run by LaunchStreamedLinear, which multiplies bfloat16 and float16.
template <typename T>
inline constexpr bool kStreamsProducts = !std::is_same_v<T, float>;

// What a product of T stores.
template <typename T>
inline constexpr LinearOutput kStoredOutput =
    std::is_same_v<T, float> ? LinearOutput::kFloat32 : LinearOutput::kStored;

// How a kind of product runs: by LaunchStreamedLinear up to streamed_rows_max rows, by plans beyond. The
// batch-invariant mode has no plans in bfloat16 and float16, and in float32 plans alone.
template <typename T>
struct DeviceProducts {
  std::unique_ptr<LinearPlansOf<T>> plans;
  int64_t streamed_rows_max = INT64_MAX;

  bool Streams(int64_t rows) const { return rows <= streamed_rows_max; }
};

// Launches one. INTERNAL with CUDA's or cuBLASLt's message and the shape.
template <typename T>
absl::Status Product(const DeviceProducts<T>& products, const LinearShape& shape,
                     const LinearOperandsOf<T>& operands, int64_t rows, cudaStream_t stream,
                     NextStart next = NextStart::kAfterLoads);

// Twice what the device caches, so that what is measured after writing it reads weights from memory.
absl::StatusOr<DeviceMemory> EvictingMemory(int device, int64_t& bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_PRODUCTS_CUDA_H_
