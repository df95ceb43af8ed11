#include "trainer/run_folder/run_folder.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

constexpr char kCheckpoints[] = "checkpoints";
constexpr char kRemoved[] = "checkpoints.removed";  // what a removal that was cut short left

struct ResultName {
  const char* name;
  bool after_checkpoint;  // a run writes it only once it has saved a checkpoint
};

// The first checkpoint is saved at the latest when the cold start ends, before any answer is
// sampled.
constexpr ResultName kResults[] = {
    {kCheckpoints, false}, {kRemoved, false}, {"metrics.jsonl", false}, {"transitions.jsonl", true},
    {"evaluation", true},  {"export", true},  {"export.tmp", true},     {"summary.json", true}};
constexpr const char* kByproducts[] = {"tensorboard", "report.html"};

constexpr char kOtherName[] = "another run.name leaves it alone";

absl::Status FileSystemError(const std::string& what, const fs::path& path, const std::error_code& error) {
  errno = error.value();
  return ErrnoStatus(what, path.string());
}

// What killed exports left in `directory`: export.PID.tmp.
std::vector<fs::path> ExportRemains(const fs::path& directory) {
  std::vector<fs::path> remains;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; it != end && !error; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("export.") && name.ends_with(".tmp")) remains.push_back(it->path());
  }
  return remains;
}

// Whether there is a file with content, or a folder with anything in it.
absl::StatusOr<bool> HoldsSomething(const fs::path& path) {
  std::error_code error;
  const bool empty = fs::is_empty(path, error);
  if (!error) return !empty;
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return false;
  return FileSystemError("cannot look into", path, error);
}

absl::Status Remove(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? FileSystemError("cannot remove", path, error) : absl::OkStatus();
}

// Bytes of the files at or below `path`; what cannot be read counts as nothing.
uintmax_t SizeOf(const fs::path& path) {
  std::error_code error;
  if (const uintmax_t size = fs::file_size(path, error); !error) return size;
  uintmax_t sum = 0;
  for (fs::recursive_directory_iterator it(path, error), end; it != end && !error; it.increment(error)) {
    std::error_code ignored;
    if (const uintmax_t size = it->file_size(ignored); !ignored) sum += size;
  }
  return sum;
}

// At once, so that a removal that is cut short leaves no checkpoint to go on from.
absl::Status SetCheckpointsAside(const fs::path& directory) {
  RETURN_IF_ERROR(Remove(directory / kRemoved));
  std::error_code error;
  fs::rename(directory / kCheckpoints, directory / kRemoved, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error) return FileSystemError("cannot rename", directory / kCheckpoints, error);
  return SyncDirectory(directory);
}

// Bytes of saves that were cut short, which the next save removes.
uintmax_t SizeOfUnfinished(const fs::path& checkpoints) {
  uintmax_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator it(checkpoints, error), end; it != end && !error; it.increment(error)) {
    if (it->path().extension() == ".tmp") sum += SizeOf(it->path());
  }
  return sum;
}

std::string Held(const fs::path& directory, const RunFolderContents& contents) {
  return absl::StrCat(directory.string(), " holds a run (", absl::StrJoin(contents.results, ", "), ")");
}

absl::StatusOr<RunStart> DecideResume(const fs::path& directory, const RunFolderContents& contents,
                                      const RunRequest& request) {
  if (contents.has_checkpoint) return RunStart::kCheckpoint;
  if (contents.results.empty()) {
    // A launcher that restarts its processes gives --resume to the first attempt too.
    if (request.restart_count > 0 || request.restarts_max > 0) return RunStart::kFresh;
    return absl::NotFoundError(
        absl::StrCat("--resume: there is no run in ", directory.string(),
                     "; leave --resume out to start one, or check run.name and run.directory"));
  }
  if (contents.has_checkpoints_folder && !contents.is_past_first_checkpoint) return RunStart::kFresh;
  return absl::FailedPreconditionError(
      absl::StrCat("--resume: ", Held(directory, contents), " without a checkpoint to go on from; put its ",
                   kCheckpoints, "/ back, or start anew: --overwrite removes the run, ", kOtherName));
}

absl::Status RefuseHeld(const fs::path& directory, const RunFolderContents& contents,
                        const RunRequest& request) {
  const std::string held = Held(directory, contents);
  if (request.restart_count > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(held, ", and restart ", request.restart_count,
                     " of a launch must not remove what an attempt before it wrote; launch with --resume, so "
                     "that every restart goes on where the last one stopped"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(held, "; --resume goes on with it, --overwrite removes it and starts anew, ", kOtherName));
}

}  // namespace

absl::StatusOr<RunFolderContents> ListRunFolder(const fs::path& directory) {
  RunFolderContents contents;
  std::error_code ignored;
  contents.has_checkpoints_folder = fs::is_directory(directory / kCheckpoints, ignored);
  for (const ResultName& result : kResults) {
    ASSIGN_OR_RETURN(const bool holds, HoldsSomething(directory / result.name));
    if (!holds) continue;
    contents.results.emplace_back(result.name);
    contents.is_past_first_checkpoint |= result.after_checkpoint;
    if (result.name != std::string_view(kCheckpoints)) continue;
    ASSIGN_OR_RETURN(const CheckpointDirectory checkpoints,
                     CheckpointDirectory::Open(directory / kCheckpoints));
    ASSIGN_OR_RETURN(const std::vector<Checkpoint> committed, checkpoints.List());
    contents.has_checkpoint = !committed.empty();
  }
  return contents;
}

absl::StatusOr<RunStart> DecideRunStart(const fs::path& directory, const RunFolderContents& contents,
                                        const RunRequest& request) {
  if (request.resume) return DecideResume(directory, contents, request);
  if (contents.results.empty()) return request.overwrite ? RunStart::kOverwrite : RunStart::kFresh;
  if (request.overwrite && request.restart_count == 0) return RunStart::kOverwrite;
  return RefuseHeld(directory, contents, request);
}

absl::Status RemoveRun(const fs::path& directory) {
  RETURN_IF_ERROR(SetCheckpointsAside(directory));
  for (const ResultName& result : kResults) RETURN_IF_ERROR(Remove(directory / result.name));
  for (const fs::path& remains : ExportRemains(directory)) RETURN_IF_ERROR(Remove(remains));
  for (const char* name : kByproducts) RETURN_IF_ERROR(Remove(directory / name));
  return absl::OkStatus();
}

absl::Status CheckRoom(const fs::path& directory, int64_t checkpoint_bytes, bool overwrite) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error) return absl::OkStatus();  // a file system that cannot tell
  uintmax_t room = space.available;
  if (overwrite) {
    for (const ResultName& result : kResults) room += SizeOf(directory / result.name);
  } else {
    room += SizeOfUnfinished(directory / kCheckpoints);
  }
  if (room >= static_cast<uintmax_t>(checkpoint_bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the disk of ", directory.string(), " has room for ", room,
                                                   " bytes, and saving takes ", checkpoint_bytes,
                                                   " (a checkpoint, and while SFT lasts that of its best "
                                                   "weights); free some, or choose another run.directory"));
}

}  // namespace warpsmith
