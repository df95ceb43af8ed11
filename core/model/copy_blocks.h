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

// `runs` in their order, from hf_offset to buffer_offset. A run that has no equal neighbour is a block of one row.
std::vector<CopyBlock> BlocksOf(const std::vector<CopyRun>& runs);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_COPY_BLOCKS_H_
