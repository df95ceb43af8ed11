#include "reward_service/grading/grade_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr char kNewer[] = "grades";
constexpr char kOlder[] = "grades.old";
constexpr char kLock[] = "lock";
constexpr size_t kLengthBytes = 4;
constexpr size_t kCheckBytes = 8;
constexpr size_t kRecordBytesMax = size_t{32} << 20;
constexpr size_t kUnwrittenBytesMax = size_t{16} << 20;

void AppendLength(size_t length, std::string* to) {
  for (size_t i = 0; i < kLengthBytes; ++i) to->push_back(static_cast<char>(length >> (8 * i)));
}

void AppendPart(std::string_view part, std::string* to) {
  AppendLength(part.size(), to);
  to->append(part);
}

// Takes a length and as many bytes from the front; false where there are fewer.
bool TakePart(std::string_view* from, std::string_view* part) {
  if (from->size() < kLengthBytes) return false;
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>((*from)[i])) << (8 * i);
  if (length > from->size() - kLengthBytes) return false;
  *part = from->substr(kLengthBytes, length);
  from->remove_prefix(kLengthBytes + length);
  return true;
}

std::string CheckOf(std::string_view body) { return Sha256Hex(body).substr(0, kCheckBytes); }

std::string Serialise(const GradeRecord& record) {
  std::string body;
  AppendPart(record.identity, &body);
  AppendPart(record.content_sha256, &body);
  AppendPart(record.grade.SerializeAsString(), &body);
  std::string bytes;
  AppendPart(absl::StrCat(CheckOf(body), body), &bytes);
  return bytes;
}

// Visits the records in `text`; how many bytes of it they are, up to the first that is broken.
size_t Visit(std::string_view text, const std::function<void(GradeRecord)>& visit) {
  std::string_view rest = text;
  for (std::string_view bytes; TakePart(&rest, &bytes);) {
    const size_t end = text.size() - rest.size();
    std::string_view identity, content, grade;
    GradeRecord record;
    if (bytes.size() < kCheckBytes) return end - kLengthBytes - bytes.size();
    std::string_view body = bytes.substr(kCheckBytes);
    const bool whole = CheckOf(body) == bytes.substr(0, kCheckBytes) && TakePart(&body, &identity) &&
                       TakePart(&body, &content) && TakePart(&body, &grade) &&
                       record.grade.ParseFromArray(grade.data(), static_cast<int>(grade.size()));
    if (!whole) return end - kLengthBytes - bytes.size();
    record.identity = std::string(identity);
    record.content_sha256 = std::string(content);
    visit(std::move(record));
  }
  return text.size() - rest.size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradeJournal>> GradeJournal::Open(
    const std::filesystem::path& folder, int64_t bytes_max, const std::function<void(GradeRecord)>& visit) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder.string(), ": ", error.message()));
  std::unique_ptr<GradeJournal> journal(new GradeJournal(folder, bytes_max));
  journal->lock_.Reset(open((folder / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!journal->lock_.valid()) return ErrnoStatus("open", (folder / kLock).string());
  if (flock(journal->lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(folder.string(), " is another service's: give each a cache_directory of its own"));
  }
  for (const char* name : {kOlder, kNewer}) {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::exists(path, error)) continue;
    const int64_t file_bytes_max = bytes_max + static_cast<int64_t>(kRecordBytesMax);
    if (static_cast<int64_t>(std::filesystem::file_size(path, error)) > file_bytes_max) {
      LogWarning(absl::StrCat(path.string(), " is longer than the ", file_bytes_max,
                              " bytes that cache_bytes_max allows: its grades are forgotten"));
      std::filesystem::remove(path, error);
      continue;
    }
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, file_bytes_max));
    const size_t whole = Visit(text, visit);
    if (whole == text.size()) continue;
    LogWarning(
        absl::StrCat(path.string(), ": ", text.size() - whole, " bytes at its end are no record; cut off"));
    std::filesystem::resize_file(path, whole, error);
    if (error) return absl::UnavailableError(absl::StrCat(path.string(), ": ", error.message()));
  }
  absl::MutexLock lock(&journal->mutex_);
  RETURN_IF_ERROR(journal->OpenNewer());
  return journal;
}

absl::Status GradeJournal::OpenNewer() {
  const std::filesystem::path path = folder_ / kNewer;
  newer_.Reset(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!newer_.valid()) return ErrnoStatus("open", path.string());
  newer_bytes_ = lseek(newer_.get(), 0, SEEK_END);
  return absl::OkStatus();
}

absl::Status GradeJournal::Write(std::string_view bytes) {
  if (newer_bytes_ > 0 && newer_bytes_ + static_cast<int64_t>(bytes.size()) > bytes_max_ / 2) {
    std::error_code error;
    std::filesystem::rename(folder_ / kNewer, folder_ / kOlder, error);
    if (error) return absl::UnavailableError(error.message());
    RETURN_IF_ERROR(OpenNewer());
  }
  const ssize_t written = write(newer_.get(), bytes.data(), bytes.size());
  if (written == static_cast<ssize_t>(bytes.size())) {
    newer_bytes_ += written;
    return absl::OkStatus();
  }
  const int reason = errno;
  // A part of a record would hide those that come after it.
  if (ftruncate(newer_.get(), newer_bytes_) != 0) return ErrnoStatus("cut", (folder_ / kNewer).string());
  return absl::UnavailableError(written < 0 ? std::strerror(reason) : "the disk is full");
}

absl::Status GradeJournal::WriteUnwritten() {
  if (!newer_.valid()) RETURN_IF_ERROR(OpenNewer());
  while (!unwritten_.empty()) {
    RETURN_IF_ERROR(Write(unwritten_.front()));
    unwritten_bytes_ -= unwritten_.front().size();
    unwritten_.pop_front();
  }
  return absl::OkStatus();
}

void GradeJournal::Append(const GradeRecord& record) {
  std::string bytes = Serialise(record);
  if (bytes.size() > kRecordBytesMax) return;
  absl::MutexLock lock(&mutex_);
  unwritten_bytes_ += bytes.size();
  unwritten_.push_back(std::move(bytes));
  const absl::Status status = WriteUnwritten();
  while (unwritten_bytes_ > kUnwrittenBytesMax) {
    unwritten_bytes_ -= unwritten_.front().size();
    unwritten_.pop_front();
  }
  if (status.ok()) {
    outage_logged_ = false;
  } else if (!std::exchange(outage_logged_, true)) {
    LogWarning(absl::StrCat("grades cannot be kept on disk, a restart now forgets them: ", status.message()));
  }
}

}  // namespace warpsmith
