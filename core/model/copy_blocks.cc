#include "core/model/copy_blocks.h"

#include <algorithm>

namespace warpsmith {
namespace {

// Whether `run` is the next row of `block`; the second row decides the distances, if rows do not overlap.
bool Continues(CopyBlock& block, const CopyRun& run, int64_t stride_max) {
  if (run.length != block.length) return false;
  const int64_t from_stride = run.hf_offset - block.from - (block.rows - 1) * block.from_stride;
  const int64_t to_stride = run.buffer_offset - block.to - (block.rows - 1) * block.to_stride;
  if (block.rows == 1 && from_stride >= block.length && to_stride >= block.length) {
    if (from_stride > stride_max || to_stride > stride_max) return false;
    block.from_stride = from_stride;
    block.to_stride = to_stride;
    return true;
  }
  return from_stride == block.from_stride && to_stride == block.to_stride;
}

}  // namespace

std::vector<CopyBlock> BlocksOf(const std::vector<CopyRun>& runs, int64_t stride_max) {
  std::vector<CopyBlock> blocks;
  for (const CopyRun& run : runs) {
    if (!blocks.empty() && Continues(blocks.back(), run, stride_max)) {
      ++blocks.back().rows;
      continue;
    }
    for (int64_t done = 0; done < run.length; done += stride_max) {
      const int64_t length = std::min(run.length - done, stride_max);
      blocks.push_back({.from = run.hf_offset + done,
                        .to = run.buffer_offset + done,
                        .length = length,
                        .from_stride = length,
                        .to_stride = length});
    }
  }
  return blocks;
}

}  // namespace warpsmith
