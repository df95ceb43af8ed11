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
  // Sums that come from the blocks of a cluster: see SendSums.
  static constexpr int kSentBytes = kBlockParts * (kRows + kPartsMax) * kStride * 4;
  // The most that a multiprocessor has room for.
  static constexpr int kStages = StagesOfParts(std::min(kStagesMax, (212 << 10) / kStageBytes), kBlockParts);
  static constexpr int BytesOf(int num_stages) {
    return std::max(num_stages * kStageBytes + kReadBehind, kBlockParts * kPartSums * 4) + kTileAlignment;
  }
  // With place for what is sent behind the stages.
  static constexpr int BytesOfWhole(int num_stages) {
    return BytesOf(num_stages) + std::max(kSentBytes - kReadBehind, 0);
  }
};

// The blocks of a cluster share the rows: row r is written by block r % num_blocks as its row r / num_blocks.
struct ClusterPlace {
  int num_blocks;
  int rank;

  // Of `num_rows`, those that block `rank` writes.
  __device__ int RowsOf(int num_rows) const { return (num_rows - rank + num_blocks - 1) / num_blocks; }
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

__device__ inline float4 Sum(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

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
    for (int i = 1; i < T::kBlockParts; ++i) sum = Sum(sum, LoadFour(from + i * T::kPartSums));
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
    if (i / T::kBlockParts < cluster.num_blocks) parts[0] = Sum(parts[0], parts[i]);
  }
  return parts[0];
}

// Sums of a warpgroup as StoreSums has them, of part `part` of all, to the blocks that write their rows: there to
// sent[part, own row, column] in shared memory, where their bytes count towards `barrier`. Of tiles of eight rows.
template <typename T>
__device__ void SendSums(const ClusterPlace& cluster, int num_rows, int part, int group,
                         const float (&sums)[T::kSums], float* sent, uint64_t* barrier) {
  static_assert(T::kBlockRows == 8);
  const int thread = threadIdx.x % kWarpgroup, lane = thread % kLanes;
  const int column = group * kGroupColumns + thread / kLanes * 16 + lane / 4;
  if (column >= T::kColumns) return;
  const int own_rows_max = (T::kBlockRows + cluster.num_blocks - 1) / cluster.num_blocks;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = lane % 4 * 2 + i;
    if (row >= num_rows) continue;
    const int own_row = row / cluster.num_blocks;
    const auto to = static_cast<uint32_t>(row % cluster.num_blocks);
    const uint32_t address = AddressInBlock(sent + (part * own_rows_max + own_row) * T::kStride + column, to);
    const uint32_t arrival = AddressInBlock(barrier, to);
    SendToBlock(address, sums[i], arrival);
    SendToBlock(address + 8 * sizeof(float), sums[2 + i], arrival);
  }
}

// The bytes that come to a block by SendSums.
template <typename T>
__device__ int BytesSent(const ClusterPlace& cluster, int num_rows) {
  return cluster.num_blocks * T::kBlockParts * cluster.RowsOf(num_rows) * T::kColumns *
         static_cast<int>(sizeof(float));
}

// SumOfParts of what was sent.
template <typename T>
__device__ float4 SumOfSent(const float* sent, const ClusterPlace& cluster, int own_row, int column) {
  const int num_parts = cluster.num_blocks * T::kBlockParts;
  const int own_rows_max = (T::kBlockRows + cluster.num_blocks - 1) / cluster.num_blocks;
  const float* const from = sent + own_row * T::kStride + column;
  float4 parts[kPartsMax];
#pragma unroll
  for (int i = 0; i < kPartsMax; ++i) {
    if (i < num_parts) parts[i] = LoadFour(from + i * own_rows_max * T::kStride);
  }
#pragma unroll
  for (int i = 1; i < kPartsMax; ++i) {
    if (i < num_parts) parts[0] = Sum(parts[0], parts[i]);
  }
  return parts[0];
}

// Both as a product without SwiGLU would have stored them.
template <typename T>
__device__ float4 Gated(float4 gate, float4 up) {
  gate = Widened<T>(Narrowed<T>(gate)), up = Widened<T>(Narrowed<T>(up));
  return {SwiGluOf<T>(gate.x, up.x), SwiGluOf<T>(gate.y, up.y), SwiGluOf<T>(gate.z, up.z),
          SwiGluOf<T>(gate.w, up.w)};
}

// What a block writes of y, four columns at a time. Where a thread's first four are and what is added to them is known
// before the sums are there.
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
    count_ = cluster.RowsOf(num_rows) * fours_;
    first_ = FourOf(threadIdx.x);
  }

  // After the former kernel's end.
  __device__ void LoadAdded() { added_ = AddedTo(first_); }

  // `sum_of(own_row, column)`: four columns from `column` of the block's sums.
  template <typename SumOf>
  __device__ void Write(SumOf sum_of) const {
    WriteFour(first_, added_, sum_of);
    if constexpr (T::kBlockRows * T::kColumns / 4 > T::kThreads) {
      for (int i = threadIdx.x + T::kThreads; i < count_; i += T::kThreads) {
        const Four four = FourOf(i);
        WriteFour(four, AddedTo(four), sum_of);
      }
    }
  }

 private:
  // Of the block's own rows, and of y. Not present: there is nothing to write.
  struct Four {
    int own_row, column;
    int column_of_y;
    int64_t place;
    bool is_present;
  };
  struct Added {
    float4 bias, residual;
  };

  __device__ Four FourOf(int i) const {
    const int own_row = i / fours_, column = i % fours_ * 4;
    const int column_of_y = first_column_ / (output_.gated ? 2 : 1) + column;
    const int row = first_row_ + own_row * cluster_.num_blocks + cluster_.rank;
    return {own_row, output_.gated ? static_cast<int>(GateColumn(column)) : column, column_of_y,
            static_cast<int64_t>(row) * columns_ + column_of_y, i < count_ && column_of_y < columns_};
  }

  __device__ Added AddedTo(const Four& four) const {
    Added added = {};
    if (!four.is_present) return added;
    if (output_.bias != nullptr)
      added.bias = LoadFour(static_cast<const Element*>(output_.bias) + four.column_of_y);
    if (output_.residual != nullptr)
      added.residual = LoadFour(static_cast<const Stored*>(output_.residual) + four.place);
    return added;
  }

  template <typename SumOf>
  __device__ void WriteFour(const Four& four, const Added& added, SumOf sum_of) const {
    if (!four.is_present) return;
    float4 value = sum_of(four.own_row, four.column);
    if (output_.gated) {
      constexpr int kUp = static_cast<int>(kSwiGluBlock);
      value = Gated<Element>(value, sum_of(four.own_row, four.column + kUp));
    }
    if (output_.bias != nullptr) value = Sum(value, added.bias);
    if (output_.residual != nullptr) value = Sum(value, added.residual);
    StoreFour(value, static_cast<Stored*>(output_.y) + four.place);
  }

  const StreamedOutput& output_;
  const ClusterPlace cluster_;
  const int first_row_, first_column_;
  const int fours_;    // of a row
  const int columns_;  // of y
  int count_;
  Four first_;
  Added added_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STREAMED_OUTPUT_CUH_
