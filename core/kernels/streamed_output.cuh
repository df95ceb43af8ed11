// How the blocks of a streamed product bring their sums together and write them.
#ifndef WARPSMITH_CORE_KERNELS_STREAMED_OUTPUT_CUH_
#define WARPSMITH_CORE_KERNELS_STREAMED_OUTPUT_CUH_

#include <algorithm>
#include <cstdint>

#include "core/kernels/depth_parts.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/stored_pair.cuh"
#include "core/kernels/swiglu.cuh"
#include "core/kernels/swiglu.h"
#include "core/kernels/warpgroup_products.cuh"

namespace warpsmith {

inline constexpr int kStagesMax = 40;

// Where sums go: y [rows, columns], or with `gated` [rows, columns / 2], SwiGLU of what would have been y.
struct StreamedOutput {
  int rows;
  int columns;
  const void* bias;
  const void* residual;
  void* y;
  bool gated;
};

// Of x and weights in T, bfloat16 or float16. A block has kRows rows of x and kTileColumns columns of y. For each of
// its parts of the depth 64 columns have a warpgroup. With 32 or 48 columns the products also read what lies behind the
// weights, and the sums of it are dropped.
template <typename T, int kRows, int kTileColumns, int kParts>
struct Tile {
  using Element = T;
  static constexpr int kBlockRows = kRows;
  static constexpr int kColumns = kTileColumns;
  static constexpr int kBlockParts = kParts;
  static constexpr int kColumnGroups = (kColumns + kGroupColumns - 1) / kGroupColumns;
  static constexpr int kGroups = kColumnGroups * kBlockParts;
  static constexpr int kThreads = kGroups * kWarpgroup + kLanes;  // the last warp copies
  static constexpr int kSums = kRows / 2;                         // of a thread
  static constexpr int kWeightBytes = kColumns * kDepth * 2;
  static constexpr int kXBytes = kRows * kDepth * 2;
  static constexpr int kStageBytes = kWeightBytes + kXBytes;
  static constexpr int kStride = kColumns + 4;  // floats from row to row of sums, against conflicts of banks
  static constexpr int kPartSums = kRows * kStride;
  static constexpr int kReadBehind = (kColumnGroups * kGroupColumns - kColumns) * kDepth * 2;
  // The most that a multiprocessor has room for.
  static constexpr int kStages = std::min(kStagesMax, (212 << 10) / kStageBytes);
  static constexpr int BytesOf(int num_stages) {
    return std::max(num_stages * kStageBytes + kReadBehind, kBlockParts * kPartSums * 4) + kTileAlignment;
  }
};

// The blocks of a cluster share the rows: row r is written by block r % num_blocks as its row r / num_blocks.
struct ClusterPlace {
  int num_blocks;
  int rank;
};

// Fragments of a warpgroup, whose columns are the `group`th of its part, to sums[part, row, column] in shared memory.
template <typename T>
__device__ void StoreSums(int part, int group, const float (&sums)[T::kSums], float* to) {
  to += part * T::kPartSums;
  const int thread = threadIdx.x % kWarpgroup, lane = thread % kLanes;
  const int column = group * kGroupColumns + thread / kLanes * 16 + lane / 4;
  if (column >= T::kColumns) return;
#pragma unroll
  for (int j = 0; j < T::kBlockRows / 8; ++j) {
    float* const row = to + (j * 8 + lane % 4 * 2) * T::kStride + column;
    row[0] = sums[4 * j];
    row[T::kStride] = sums[4 * j + 1];
    row[8] = sums[4 * j + 2];
    row[T::kStride + 8] = sums[4 * j + 3];
  }
}

__device__ inline float4 Added(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

template <typename T>
__device__ float4 Widened(uint2 bits) {
  const float2 low = WidenedPair<T>(bits.x), high = WidenedPair<T>(bits.y);
  return {low.x, low.y, high.x, high.y};
}
template <typename T>
__device__ uint2 Narrowed(float4 value) {
  return {NarrowedPair<T>(value.x, value.y), NarrowedPair<T>(value.z, value.w)};
}

template <typename T>
__device__ float4 LoadFour(const T* from) {
  return Widened<T>(*reinterpret_cast<const uint2*>(from));
}
__device__ inline float4 LoadFour(const float* from) { return *reinterpret_cast<const float4*>(from); }

template <typename T>
__device__ void StoreFour(float4 value, T* to) {
  *reinterpret_cast<uint2*>(to) = Narrowed<T>(value);
}
__device__ inline void StoreFour(float4 value, float* to) { *reinterpret_cast<float4*>(to) = value; }

// Four columns of a block's row, those from `column`: the sums of all parts, of all blocks of the cluster, added in
// their order.
template <typename T>
__device__ float4 SumOfParts(const float* sums, const ClusterPlace& cluster, int own_row, int column) {
  const float* const from = sums + (own_row * cluster.num_blocks + cluster.rank) * T::kStride + column;
  if (cluster.num_blocks == 1) {
    float4 sum = LoadFour(from);
#pragma unroll
    for (int i = 1; i < T::kBlockParts; ++i) sum = Added(sum, LoadFour(from + i * T::kPartSums));
    return sum;
  }
  float4 parts[kPartsMax];
#pragma unroll
  for (int i = 0; i < kPartsMax; ++i) {
    const int block = i / T::kBlockParts;
    if (block < cluster.num_blocks) parts[i] = LoadOfBlock(from + i % T::kBlockParts * T::kPartSums, block);
  }
#pragma unroll
  for (int i = 1; i < kPartsMax; ++i) {
    if (i / T::kBlockParts < cluster.num_blocks) parts[0] = Added(parts[0], parts[i]);
  }
  return parts[0];
}

// Both as a product without SwiGLU would have stored them.
template <typename T>
__device__ float4 Gated(float4 gate, float4 up) {
  gate = Widened<T>(Narrowed<T>(gate)), up = Widened<T>(Narrowed<T>(up));
  return {SwiGluOf(gate.x, up.x), SwiGluOf(gate.y, up.y), SwiGluOf(gate.z, up.z), SwiGluOf(gate.w, up.w)};
}

// What a block writes of y, four columns at a time.
template <typename T, typename Stored>
class OutputWriter {
  using Element = typename T::Element;

 public:
  __device__ OutputWriter(const StreamedOutput& output, const ClusterPlace& cluster, int first_row,
                          int first_column)
      : output_(output),
        cluster_(cluster),
        first_row_(first_row),
        first_column_(first_column),
        fours_(T::kColumns / (output.gated ? 8 : 4)),
        columns_(output.gated ? output.columns / 2 : output.columns) {
    const int num_rows = min(T::kBlockRows, output.rows - first_row);
    count_ = (num_rows - cluster.rank + cluster.num_blocks - 1) / cluster.num_blocks * fours_;
  }

  // Before the sums are there: what the first four columns of this thread are added to.
  __device__ void LoadResidual() {
    if (static_cast<int>(threadIdx.x) < count_) residual_ = ResidualOf(threadIdx.x);
  }

  __device__ void Write(const float* sums) const {
    for (int i = threadIdx.x; i < count_; i += T::kThreads) {
      const int own_row = i / fours_, column = i % fours_ * 4;
      if (ColumnOf(i) >= columns_) continue;
      float4 value;
      if (output_.gated) {
        const int gate = static_cast<int>(GateColumn(column));
        value = Gated<Element>(SumOfParts<T>(sums, cluster_, own_row, gate),
                               SumOfParts<T>(sums, cluster_, own_row, gate + static_cast<int>(kSwiGluBlock)));
      } else {
        value = SumOfParts<T>(sums, cluster_, own_row, column);
      }
      if (output_.bias != nullptr)
        value = Added(value, LoadFour(static_cast<const Element*>(output_.bias) + ColumnOf(i)));
      if (output_.residual != nullptr) value = Added(value, i < T::kThreads ? residual_ : ResidualOf(i));
      StoreFour(value, static_cast<Stored*>(output_.y) + PlaceOf(i));
    }
  }

 private:
  __device__ int ColumnOf(int i) const { return first_column_ / (output_.gated ? 2 : 1) + i % fours_ * 4; }
  __device__ int64_t PlaceOf(int i) const {
    const int row = first_row_ + i / fours_ * cluster_.num_blocks + cluster_.rank;
    return static_cast<int64_t>(row) * columns_ + ColumnOf(i);
  }
  __device__ float4 ResidualOf(int i) const {
    if (output_.residual == nullptr || ColumnOf(i) >= columns_) return {};
    return LoadFour(static_cast<const Stored*>(output_.residual) + PlaceOf(i));
  }

  const StreamedOutput& output_;
  const ClusterPlace cluster_;
  const int first_row_, first_column_;
  const int fours_;    // of a row
  const int columns_;  // of y
  int count_;
  float4 residual_ = {};
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STREAMED_OUTPUT_CUH_
