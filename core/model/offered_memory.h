// What a process says of weights in its memory that others may copy. Plain: sender and receivers name it alike.
#ifndef WARPSMITH_CORE_MODEL_OFFERED_MEMORY_H_
#define WARPSMITH_CORE_MODEL_OFFERED_MEMORY_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/distributed/broadcast_place.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// One buffer of the layout, in bfloat16 or float16.
struct MemoryBuffer {
  std::string name;
  int64_t offset_bytes = 0;
  int64_t length_bytes = 0;
  std::string checksum;  // ToHex(MemoryChecksum)
};

struct OfferedMemory {
  // Unix socket of a DescriptorServer that hands out the memory.
  std::filesystem::path socket_path;
  uint64_t version = 0;
  std::string layout_sha256;
  std::vector<MemoryBuffer> buffers;
};

// Weights that their sender sends to all receivers at once: the memory has no socket_path.
struct OfferedBroadcast {
  OfferedMemory memory;
  BroadcastPlace place;  // the receiver's
  // Whether the weights are no longer wanted; empty: they are.
  std::function<bool()> is_given_up;
};

// Buffers as the layout has them one behind the other, with `checksums` of each.
std::vector<MemoryBuffer> DescribeBuffers(const ParameterLayout& layout,
                                          const std::vector<MemoryChecksum>& checksums);

// INVALID_ARGUMENT unless names, places and lengths are those of DescribeBuffers; FAILED_PRECONDITION for another
// layout.
absl::Status CheckOfferedMemory(const OfferedMemory& offered, const ParameterLayout& layout);

// DATA_LOSS, naming the first buffer, unless `found` are the checksums of `offered`. `where` says what was looked at.
absl::Status CheckArrived(const OfferedMemory& offered, const std::vector<MemoryChecksum>& found,
                          const char* where);

// What a DescriptorServer says beside the memory: equal for sender and receiver, or they mean different weights.
std::string MemoryText(uint64_t version, const ParameterLayout& layout);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_OFFERED_MEMORY_H_
