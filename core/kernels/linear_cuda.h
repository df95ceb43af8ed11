// linear.h on a GPU: products of cuBLASLt whose algorithms are measured once and remembered.
#ifndef WARPSMITH_CORE_KERNELS_LINEAR_CUDA_H_
#define WARPSMITH_CORE_KERNELS_LINEAR_CUDA_H_

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <map>
#include <utility>
#include <vector>

#include "core/kernels/cublas_workspace.h"
#include "core/kernels/linear.h"

namespace warpsmith {

// Device memory, aligned to 16 bytes. y holds what the shape's output says; residual is of the same type and may be y.
template <typename T>
struct LinearOperandsOf {
  const T* x = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;         // null without has_bias
  const void* residual = nullptr;  // null without has_residual
  void* y = nullptr;
};
using LinearOperands = LinearOperandsOf<__nv_bfloat16>;

// Whether an algorithm may cut the sum over depth into parts, which several blocks work out and which are added in
// float32: faster for few rows. Never of a layer with a bias, whose results would be rounded twice.
enum class DepthSplit { kNever, kAllowed };

// How long Prepare looks: algorithms that cuBLASLt proposes for a bucket, and runs of each of which the median counts,
// after warm_ups that do not. 0 runs: nothing is measured, and the first proposal that all rows of the bucket allow is
// taken, the same in every process.
struct LinearSearch {
  int proposals_max = 8;
  int warm_ups = 2;
  int runs = 9;
};

// Every row count of a bucket runs by the bucket's algorithm, so that within a bucket a row's sums are made in one
// order, whatever stands beside it, as far as cuBLASLt's algorithm keeps to its tile and its parts: tests/gpu compares
// bits. With one bucket and DepthSplit::kNever all row counts share one order: the batch-invariant mode.
//
// T is __nv_bfloat16, __half or float. float32 is multiplied as float32, never as TF32, and y is float32 then.
//
// Not thread-safe; of one device and one stream at a time, for the workspace is shared.
template <typename T>
class LinearPlansOf {
 public:
  // `row_buckets` ascends; with none there is nothing to prepare and nothing can be launched. The handle and the
  // workspace outlive this.
  LinearPlansOf(cublasLtHandle_t handle, CublasWorkspace workspace, std::vector<int64_t> row_buckets,
                DepthSplit split, LinearSearch search = {})
      : handle_(handle),
        workspace_(workspace),
        row_buckets_(std::move(row_buckets)),
        split_(split),
        search_(search) {}

  // Chooses an algorithm for each bucket by measuring those that cuBLASLt proposes; nothing where `shape` is prepared
  // already. The operands hold as many rows as the largest bucket, and y is overwritten. `evicted` is overwritten
  // before each run, so that weights come from memory as in a step: give it more bytes than the device's cache has, or
  // none. Waits for the device; not during a capture. CUBLAS_STATUS_NOT_SUPPORTED where cuBLASLt has no algorithm for
  // the shape, among them a bias with float32 output, and stored output of float32.
  cublasStatus_t Prepare(const LinearShape& shape, const LinearOperandsOf<T>& operands,
                         CublasWorkspace evicted, cudaStream_t stream);

  // Launches on `stream`, does not synchronise. CUBLAS_STATUS_NOT_INITIALIZED for a shape that is not prepared,
  // CUBLAS_STATUS_INVALID_VALUE for more rows than the largest bucket or none.
  cublasStatus_t Launch(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                        cudaStream_t stream) const;

  // What the chosen algorithm took for a whole bucket when it was measured; 0 for a shape that is not prepared.
  double MeasuredSeconds(const LinearShape& shape, int bucket) const;

 private:
  struct Choice {
    cublasLtMatmulAlgo_t algorithm;
    double seconds = 0;
  };

  cublasStatus_t Choose(const LinearShape& shape, int bucket, const LinearOperandsOf<T>& operands,
                        CublasWorkspace evicted, cudaStream_t stream, Choice& choice) const;
  cublasStatus_t Propose(const LinearShape& shape, int bucket, const LinearOperandsOf<T>& operands,
                         std::vector<cublasLtMatmulHeuristicResult_t>& proposals) const;
  cublasStatus_t Measure(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                         CublasWorkspace evicted, cudaStream_t stream, Choice& choice) const;

  cublasLtHandle_t handle_;
  CublasWorkspace workspace_;
  std::vector<int64_t> row_buckets_;
  DepthSplit split_;
  LinearSearch search_;
  std::map<LinearShape, std::vector<Choice>> choices_;  // a choice a bucket
};
using LinearPlans = LinearPlansOf<__nv_bfloat16>;

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_LINEAR_CUDA_H_
