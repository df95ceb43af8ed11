// Which tiles of the depth a block of a streamed product has, and where they come to.
#ifndef WARPSMITH_CORE_KERNELS_STREAMED_DEPTH_CUH_
#define WARPSMITH_CORE_KERNELS_STREAMED_DEPTH_CUH_

#include <cstdint>

#include "core/kernels/depth_parts.h"

namespace warpsmith {

// The tiles of a block's parts come by turns, a tile of each part. Parts differ by a tile at most, so that places
// without a tile come last.
template <int kBlockParts>
struct BlockDepth {
  DepthPart parts[kBlockParts];

  __device__ BlockDepth(int block, int num_blocks, int num_tiles) {
#pragma unroll
    for (int i = 0; i < kBlockParts; ++i) {
      parts[i] = TilesOfPart(block * kBlockParts + i, num_blocks * kBlockParts, num_tiles);
    }
  }

  __device__ int num_places() const {
    int most = 0;
#pragma unroll
    for (const DepthPart& part : parts) most = max(most, part.end - part.first);
    return most * kBlockParts;
  }
  // -1: none.
  __device__ int TileOfPlace(int place) const {
    const DepthPart part = PartOf(place % kBlockParts);
    const int tile = part.first + place / kBlockParts;
    return tile < part.end ? tile : -1;
  }
  // `index` is not known to the compiler, and the parts shall stay in registers.
  __device__ DepthPart PartOf(int index) const {
    DepthPart part = parts[0];
#pragma unroll
    for (int i = 1; i < kBlockParts; ++i) part = i == index ? parts[i] : part;
    return part;
  }
};

// A place in a ring of stages whose number a launch knows.
struct RingPlace {
  int stage;
  uint32_t parity;

  __device__ void Advance(int places, int num_stages) {
    stage += places;
    if (stage < num_stages) return;
    stage -= num_stages;
    parity ^= 1;
  }
};

// How a launch divides depth and memory.
struct BlockPlan {
  int num_tiles;           // of the depth
  int num_stages;          // at least two for each part, as many for each: see StagesOfParts
  bool starts_next_early;  // num_stages are as many as a block has places
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STREAMED_DEPTH_CUH_
