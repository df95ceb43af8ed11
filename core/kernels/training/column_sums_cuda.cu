#include "core/kernels/reductions.cuh"
#include "core/kernels/rotated_head.cuh"
#include "core/kernels/training/column_sums_cuda.h"

namespace warpsmith {
namespace {

constexpr int kWarpsOfBlock = 32;
constexpr int kColumnsOfBlock = 2 * kWarp;

// A pair of columns a lane; warp w sums the rows w, w + 32, ..., then the first warp adds the warps' sums in order.
template <typename T>
__global__ void ColumnSumsKernel(const ColumnSums<T> sums) {
  __shared__ float2 parts[kWarpsOfBlock][kWarp];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int64_t column = int64_t{blockIdx.x} * kColumnsOfBlock + 2 * lane;
  float2 sum = {};
  if (column < sums.columns) {
    for (int64_t row = warp; row < sums.rows; row += kWarpsOfBlock) {
      sum = PairSum(sum, LoadPair(sums.x + row * RowStride(sums) + column));
    }
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= sums.columns) return;
  float2 total = LoadPair(sums.sums + column);
  for (int w = 0; w < kWarpsOfBlock; ++w) total = PairSum(total, parts[w][lane]);
  StorePair(total, sums.sums + column);
}

}  // namespace

template <typename T>
cudaError_t LaunchColumnSums(const ColumnSums<T>& sums, cudaStream_t stream) {
  if (sums.rows < 0 || sums.columns < 1 || sums.columns % 2 != 0 || RowStride(sums) % 2 != 0)
    return cudaErrorInvalidValue;
  const auto blocks = static_cast<unsigned>((sums.columns + kColumnsOfBlock - 1) / kColumnsOfBlock);
  ColumnSumsKernel<T><<<blocks, kWarpsOfBlock * kWarp, 0, stream>>>(sums);
  return cudaGetLastError();
}

template cudaError_t LaunchColumnSums(const ColumnSums<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchColumnSums(const ColumnSums<float>&, cudaStream_t);

}  // namespace warpsmith
