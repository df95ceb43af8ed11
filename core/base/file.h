// Whole files: read, write atomically, find what was installed beside the running program.
#ifndef WARPSMITH_CORE_BASE_FILE_H_
#define WARPSMITH_CORE_BASE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// The content of `path`. NOT_FOUND; INVALID_ARGUMENT if larger than `bytes_max`; INTERNAL with errno
// otherwise.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t bytes_max = int64_t{1} << 32);

// Writes to a temporary file beside `path`, syncs it and renames it: after a crash `path` has the old content
// or the new, never a part. RESOURCE_EXHAUSTED when the disk is full; nothing is left behind then.
absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

// Syncs a directory, so that renames in it survive a power failure.
absl::Status SyncDirectory(const std::filesystem::path& directory);

// Folder of the running program, with links resolved.
std::filesystem::path ExecutableDirectory();

// An absl::Status for the present errno: "<what> <path>: <strerror>", ENOSPC and EDQUOT as
// RESOURCE_EXHAUSTED, ENOENT as NOT_FOUND, EACCES and EPERM as PERMISSION_DENIED, everything else INTERNAL.
absl::Status ErrnoStatus(std::string_view what, std::string_view path);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_FILE_H_
