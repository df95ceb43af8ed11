#include "core/model/copy_blocks.h"

namespace warpsmith {
namespace {

// Whether `run` is the next row of `block`; the second row decides the distances, if rows do not overlap.
bool Continues(CopyBlock& block, const CopyRun& run) {
  if (run.length != block.length) return false;
  const int64_t from_stride = run.hf_offset - block.from - (block.rows - 1) * block.from_stride;
  const int64_t to_stride = run.buffer_offset - block.to - (block.rows - 1) * block.to_stride;
  if (block.rows == 1 && from_stride >= block.length && to_stride >= block.length) {
    block.from_stride = from_stride;
    block.to_stride = to_stride;
    return true;
  }
  return from_stride == block.from_stride && to_stride == block.to_stride;
}

}  // namespace

std::vector<CopyBlock> BlocksOf(const std::vector<CopyRun>& runs) {
  std::vector<CopyBlock> blocks;
  for (const CopyRun& run : runs) {
    if (!blocks.empty() && Continues(blocks.back(), run)) {
      ++blocks.back().rows;
      continue;
    }
    blocks.push_back({.from = run.hf_offset,
                      .to = run.buffer_offset,
                      .length = run.length,
                      .from_stride = run.length,
                      .to_stride = run.length});
  }
  return blocks;
}

}  // namespace warpsmith
