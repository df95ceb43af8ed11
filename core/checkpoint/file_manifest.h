// The list of a checkpoint's files with size and SHA-256, which tells whether it is whole.
#ifndef WARPSMITH_CORE_CHECKPOINT_FILE_MANIFEST_H_
#define WARPSMITH_CORE_CHECKPOINT_FILE_MANIFEST_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

inline constexpr char kManifestFile[] = "manifest.json";

struct FileRecord {
  std::string name;  // relative to the directory, "/" between folders
  int64_t num_bytes = 0;
  std::string sha256;  // hexadecimal
};

// How closely files are compared with their records.
enum class Verification { kSizes, kDigests };

// The records of all regular files below `directory`, the manifest aside, sorted by name. INVALID_ARGUMENT
// for anything that is neither file nor folder.
absl::StatusOr<std::vector<FileRecord>> RecordFiles(const std::filesystem::path& directory);

// Syncs all files and folders below `directory`, and itself, to disk.
absl::Status SyncTree(const std::filesystem::path& directory);

// Writes the manifest of `directory`, last of its files and synced.
absl::Status WriteManifest(const std::filesystem::path& directory, const std::vector<FileRecord>& records);

// NOT_FOUND without manifest, INVALID_ARGUMENT if it cannot be read or names files elsewhere,
// FAILED_PRECONDITION if a newer version wrote it.
absl::StatusOr<std::vector<FileRecord>> ReadManifest(const std::filesystem::path& directory);

// OK if every file of the manifest is as it says; DATA_LOSS naming those that are not. Other errors
// mean that it could not be told.
absl::Status VerifyManifest(const std::filesystem::path& directory, Verification verification);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_FILE_MANIFEST_H_
