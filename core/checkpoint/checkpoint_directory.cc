#include "core/checkpoint/checkpoint_directory.h"

#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/rename_over.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_";
constexpr std::string_view kOlderPrefix = "step_";  // of earlier versions; read, never written
constexpr std::string_view kTemporarySuffix = ".tmp";

std::string FolderName(int64_t number, std::string_view prefix = kPrefix) {
  return absl::StrFormat("%s%06d", prefix, number);
}

fs::path TemporaryPath(const fs::path& root, int64_t number) {
  return root / (FolderName(number) + std::string(kTemporarySuffix));
}

bool EndsWith(const std::string& name, std::string_view suffix) {
  return name.size() >= suffix.size() &&
         name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// The number of a committed checkpoint's folder.
std::optional<int64_t> NumberOf(const std::string& name) {
  for (const std::string_view prefix : {kPrefix, kOlderPrefix}) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [parsed_end, error] = std::from_chars(name.data() + prefix.size(), end, number);
    if (error == std::errc() && parsed_end == end && name == FolderName(number, prefix)) return number;
  }
  return std::nullopt;
}

absl::Status FileSystemError(const std::string& what, const fs::path& path, const std::error_code& error) {
  errno = error.value();
  return ErrnoStatus(what, path.string());
}

absl::Status Remove(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? FileSystemError("cannot remove", path, error) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> NamesIn(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; it != end && !error; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return FileSystemError("cannot list", directory, error);
  return names;
}

}  // namespace

absl::StatusOr<CheckpointDirectory> CheckpointDirectory::Open(const fs::path& root) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error) return FileSystemError("cannot create", root, error);
  return CheckpointDirectory(root);
}

absl::StatusOr<fs::path> CheckpointDirectory::Begin(int64_t number) {
  WS_CHECK(number >= 0 && number <= kNumberMax) << number;
  fs::path path = TemporaryPath(root_, number);
  RETURN_IF_ERROR(Remove(path));
  std::error_code error;
  fs::create_directory(path, error);
  if (error) return FileSystemError("cannot create", path, error);
  return path;
}

absl::StatusOr<Checkpoint> CheckpointDirectory::Commit(int64_t number) {
  const fs::path temporary = TemporaryPath(root_, number);
  ASSIGN_OR_RETURN(const std::vector<FileRecord> records, RecordFiles(temporary));
  RETURN_IF_ERROR(SyncTree(temporary));
  RETURN_IF_ERROR(WriteManifest(temporary, records));
  const fs::path path = root_ / FolderName(number);
  RETURN_IF_ERROR(RenameOver(temporary, path));
  RETURN_IF_ERROR(SyncDirectory(root_));
  return Checkpoint{number, path};
}

absl::StatusOr<std::vector<Checkpoint>> CheckpointDirectory::List() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(root_));
  std::vector<Checkpoint> checkpoints;
  for (const std::string& name : names) {
    if (const std::optional<int64_t> number = NumberOf(name)) checkpoints.push_back({*number, root_ / name});
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const Checkpoint& a, const Checkpoint& b) { return a.number < b.number; });
  return checkpoints;
}

absl::StatusOr<std::optional<Checkpoint>> CheckpointDirectory::NewestComplete(
    Verification verification) const {
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> checkpoints, List());
  std::vector<std::string> damaged;
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
    const absl::Status status = VerifyManifest(checkpoint->path, verification);
    if (status.ok()) return std::optional<Checkpoint>(*checkpoint);
    if (!absl::IsDataLoss(status)) return status;
    LogWarning(absl::StrCat("passing over a damaged checkpoint: ", status.message()));
    damaged.emplace_back(status.message());
  }
  if (damaged.empty()) return std::optional<Checkpoint>();
  return absl::DataLossError(
      absl::StrCat("every checkpoint in ", root_.string(), " is damaged: ", absl::StrJoin(damaged, "; ")));
}

absl::Status CheckpointDirectory::RemoveIncomplete() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(root_));
  for (const std::string& name : names) {
    const std::string stem = name.substr(0, name.size() - std::min(name.size(), kTemporarySuffix.size()));
    if (EndsWith(name, kTemporarySuffix) && NumberOf(stem).has_value()) RETURN_IF_ERROR(Remove(root_ / name));
  }
  return absl::OkStatus();
}

absl::Status CheckpointDirectory::Retain(int num_kept, const std::set<int64_t>& pinned) {
  WS_CHECK(num_kept >= 1) << num_kept;
  ASSIGN_OR_RETURN(std::vector<Checkpoint> checkpoints, List());
  int num_whole = 0;
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
    const absl::Status status = VerifyManifest(checkpoint->path, Verification::kSizes);
    if (!status.ok() && !absl::IsDataLoss(status)) return status;
    if (status.ok() && (++num_whole <= num_kept || pinned.count(checkpoint->number) > 0)) continue;
    // Renamed first: a folder half removed must not pass for a checkpoint.
    const fs::path doomed = TemporaryPath(root_, checkpoint->number);
    RETURN_IF_ERROR(Remove(doomed));
    if (rename(checkpoint->path.c_str(), doomed.c_str()) != 0)
      return ErrnoStatus("cannot rename to", doomed.string());
    RETURN_IF_ERROR(Remove(doomed));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
