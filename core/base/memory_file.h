// Files in memory alone, which processes hand each other by descriptor.
#ifndef WARPSMITH_CORE_BASE_MEMORY_FILE_H_
#define WARPSMITH_CORE_BASE_MEMORY_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// Returns a file of `num_bytes` zeros that may be sealed.
absl::StatusOr<UniqueFd> MakeMemoryFile(int64_t num_bytes = 0);

// Forbids any further change of content and size.
absl::Status SealMemoryFile(int fd);

// Returns a sealed file that holds `text`, at offset 0.
absl::StatusOr<UniqueFd> SealedMemoryFile(std::string_view text);

// Returns all that a file holds, wherever its offset is. INVALID_ARGUMENT where that is more than `bytes_max`.
absl::StatusOr<std::string> ReadMemoryFile(int fd, int64_t bytes_max);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_MEMORY_FILE_H_
