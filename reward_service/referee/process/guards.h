// Where a program's outputs lie, every stretch of memory between them is filled with a byte that must stay.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_GUARDS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_GUARDS_H_

#include <cstdint>

#include "reward_service/referee/tensors/tensor_layout.h"

namespace warpsmith {

inline constexpr unsigned char kGuardByte = 0xA5;

// Calls `visit(start, end)` for every stretch of an output buffer that belongs to no output.
template <typename Visit>
void ForEachGuard(const TaskLayout& layout, Visit visit) {
  int64_t start = 0;
  for (const TensorSpec& spec : layout.outputs) {
    visit(start, spec.offset);
    start = spec.offset + spec.num_bytes;
  }
  visit(start, layout.output_buffer_bytes);
}

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_GUARDS_H_
