// Runs of a buffer as a device copies them: those of one length and at equal distances together.
#ifndef WARPSMITH_CORE_MODEL_COPY_BLOCKS_H_
#define WARPSMITH_CORE_MODEL_COPY_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "core/model/parameter_layout.h"

namespace warpsmith {

// `rows` runs of `length` elements: run r goes from element `from` + r `from_stride` to `to` + r `to_stride`.
struct CopyBlock {
  int64_t from = 0;
  int64_t to = 0;
  int64_t length = 0;
  int64_t rows = 1;
  int64_t from_stride = 0;
  int64_t to_stride = 0;
};

// A block copy of CUDA's takes rows that lie less than 2^31 bytes apart, cudaDeviceProp::memPitch: in elements of 2
// bytes, rounded down to what is aligned.
inline constexpr int64_t kBlockStrideMax = int64_t{1} << 29;

// `runs` in their order, from hf_offset to buffer_offset. A run that has no equal neighbour is a block of one row. No
// row is longer than `stride_max`, and no two rows of a block lie further apart: a longer run, such as the embedding of
// a large model, is several blocks.
std::vector<CopyBlock> BlocksOf(const std::vector<CopyRun>& runs, int64_t stride_max = kBlockStrideMax);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_COPY_BLOCKS_H_
