#include "core/checkpoint/file_manifest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/checkpoint/strict_json.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kManifestBytesMax = int64_t{16} << 20;
constexpr int kFormat = 1;

absl::Status Lost(const fs::path& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path.string(), ": ", what));
}

absl::Status Invalid(const fs::path& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", what));
}

absl::StatusOr<FileRecord> RecordFile(const fs::path& path, std::string name) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open", path.string());
  FileRecord record{.name = std::move(name)};
  Sha256 sha;
  std::vector<char> buffer(size_t{1} << 20);
  while (true) {
    const ssize_t num_read = read(fd.get(), buffer.data(), buffer.size());
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) return ErrnoStatus("cannot read", path.string());
    if (num_read == 0) break;
    sha.Update(buffer.data(), static_cast<size_t>(num_read));
    record.num_bytes += num_read;
  }
  record.sha256 = sha.HexDigest();
  return record;
}

// All entries below `directory`, itself left out.
absl::StatusOr<std::vector<fs::directory_entry>> ListTree(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; it != end && !error; it.increment(error)) {
    entries.push_back(*it);
  }
  if (error) return Invalid(directory, "cannot be listed: " + error.message());
  return entries;
}

absl::Status SyncFile(const fs::path& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open", path.string());
  if (fsync(fd.get()) != 0) return ErrnoStatus("cannot sync", path.string());
  return absl::OkStatus();
}

// A relative path that stays where it is.
bool IsInside(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute() || name.find('\0') != std::string::npos) return false;
  return std::none_of(path.begin(), path.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

absl::StatusOr<FileRecord> ReadRecord(const Json& json, const fs::path& path) {
  if (!json.is_object() || !json.contains("name") || !json.contains("bytes") || !json.contains("sha256") ||
      !json["name"].is_string() || !json["bytes"].is_number_unsigned() || !json["sha256"].is_string()) {
    return Invalid(path, "holds a record that is not of name, bytes and sha256");
  }
  FileRecord record{json["name"].get<std::string>(), json["bytes"].get<int64_t>(),
                    json["sha256"].get<std::string>()};
  if (!IsInside(record.name)) return Invalid(path, "names a file elsewhere: " + Escape(record.name, 200));
  return record;
}

absl::Status VerifyFile(const fs::path& path, const FileRecord& record, Verification verification) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? Lost(path, "is missing")
                                               : ErrnoStatus("cannot stat", path.string());
  }
  if (!S_ISREG(status.st_mode)) return Lost(path, "is no file");
  if (status.st_size != record.num_bytes) {
    return Lost(path,
                absl::StrCat("has ", status.st_size, " bytes, but was written with ", record.num_bytes));
  }
  if (verification == Verification::kSizes) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FileRecord found, RecordFile(path, record.name));
  if (found.sha256 == record.sha256) return absl::OkStatus();
  return Lost(path, absl::StrCat("has SHA-256 ", found.sha256, ", but was written with ", record.sha256));
}

}  // namespace

absl::StatusOr<std::vector<FileRecord>> RecordFiles(const fs::path& directory) {
  ASSIGN_OR_RETURN(const std::vector<fs::directory_entry> entries, ListTree(directory));
  std::vector<FileRecord> records;
  for (const fs::directory_entry& entry : entries) {
    const fs::file_status status = entry.symlink_status();
    if (fs::is_directory(status)) continue;
    if (!fs::is_regular_file(status)) return Invalid(entry.path(), "is neither file nor folder");
    std::string name = entry.path().lexically_relative(directory).generic_string();
    if (name == kManifestFile) continue;
    ASSIGN_OR_RETURN(FileRecord record, RecordFile(entry.path(), std::move(name)));
    records.push_back(std::move(record));
  }
  std::sort(records.begin(), records.end(),
            [](const FileRecord& a, const FileRecord& b) { return a.name < b.name; });
  return records;
}

absl::Status SyncTree(const fs::path& directory) {
  ASSIGN_OR_RETURN(const std::vector<fs::directory_entry> entries, ListTree(directory));
  for (const fs::directory_entry& entry : entries) RETURN_IF_ERROR(SyncFile(entry.path()));
  return SyncDirectory(directory);
}

absl::Status WriteManifest(const fs::path& directory, const std::vector<FileRecord>& records) {
  Json files = Json::array();
  for (const FileRecord& record : records) {
    files.push_back({{"name", record.name}, {"bytes", record.num_bytes}, {"sha256", record.sha256}});
  }
  const Json json = {{"format", kFormat}, {"files", files}};
  return WriteFileAtomically(directory / kManifestFile,
                             json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n");
}

absl::StatusOr<std::vector<FileRecord>> ReadManifest(const fs::path& directory) {
  const fs::path path = directory / kManifestFile;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kManifestBytesMax));
  const absl::StatusOr<Json> json = ParseStrictJson(text);
  if (!json.ok()) return Invalid(path, std::string(json.status().message()));
  if (!json->contains("format") || !(*json)["format"].is_number_integer())
    return Invalid(path, "has no format");
  const auto format = (*json)["format"].get<int64_t>();
  if (format > kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(path.string(), " has format ", format,
                                                      ", and this version reads up to ", kFormat,
                                                      "; use the version of Warpsmith that wrote it"));
  }
  if (format != kFormat) return Invalid(path, "is of another format");
  if (!json->contains("files") || !(*json)["files"].is_array()) return Invalid(path, "has no list of files");
  std::vector<FileRecord> records;
  for (const Json& record_json : (*json)["files"]) {
    ASSIGN_OR_RETURN(FileRecord record, ReadRecord(record_json, path));
    records.push_back(std::move(record));
  }
  return records;
}

absl::Status VerifyManifest(const fs::path& directory, Verification verification) {
  const absl::StatusOr<std::vector<FileRecord>> records = ReadManifest(directory);
  if (absl::IsNotFound(records.status()) || absl::IsInvalidArgument(records.status())) {
    return Lost(directory, std::string(records.status().message()));
  }
  RETURN_IF_ERROR(records.status());
  std::vector<std::string> damaged;
  for (const FileRecord& record : *records) {
    const absl::Status status = VerifyFile(directory / record.name, record, verification);
    if (!status.ok() && !absl::IsDataLoss(status)) return status;
    if (!status.ok()) damaged.emplace_back(status.message());
  }
  return damaged.empty() ? absl::OkStatus() : absl::DataLossError(absl::StrJoin(damaged, "; "));
}

}  // namespace warpsmith
