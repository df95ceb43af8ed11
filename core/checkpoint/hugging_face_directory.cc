#include "core/checkpoint/hugging_face_directory.h"

#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/file_manifest.h"
#include "core/checkpoint/rename_over.h"
#include "core/checkpoint/tensor_directory.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

absl::Status CheckNames(const std::vector<NamedFile>& files) {
  std::set<std::string> names;
  for (const NamedFile& file : files) {
    const bool is_plain =
        !file.name.empty() && file.name[0] != '.' && file.name.find('/') == std::string::npos;
    if (!is_plain || !names.insert(file.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("file name \"", Escape(file.name, 100), "\" cannot be, or is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteContents(const fs::path& directory, const HuggingFaceContents& contents,
                           const TensorSource& source) {
  for (const NamedFile& file : contents.files) {
    RETURN_IF_ERROR(WriteFileAtomically(directory / file.name, file.content));
  }
  RETURN_IF_ERROR(WriteTensorDirectory(directory, contents.tensors, contents.shard_bytes_max, source));
  return SyncTree(directory);
}

absl::Status CreateEmpty(const fs::path& directory) {
  std::error_code error;
  fs::remove_all(directory, error);
  if (!error) fs::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  errno = error.value();
  return ErrnoStatus("cannot create", directory.string());
}

}  // namespace

absl::Status WriteHuggingFaceDirectory(const fs::path& directory, const HuggingFaceContents& contents,
                                       const TensorSource& source) {
  RETURN_IF_ERROR(CheckNames(contents.files));
  // Of this process alone: another one may be writing for the same place.
  const fs::path temporary = absl::StrCat(directory.string(), ".", getpid(), ".tmp");
  RETURN_IF_ERROR(CreateEmpty(temporary));
  absl::Status status = WriteContents(temporary, contents, source);
  if (status.ok()) status = RenameOver(temporary, directory);
  if (!status.ok()) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    return status;
  }
  return SyncDirectory(directory.has_parent_path() ? directory.parent_path() : ".");
}

}  // namespace warpsmith
