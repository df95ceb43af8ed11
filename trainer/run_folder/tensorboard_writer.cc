#include "trainer/run_folder/tensorboard_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "trainer/run_folder/crc32c.h"

namespace warpsmith {
namespace {

constexpr char kNamePrefix[] = "events.out.tfevents.";
constexpr char kNameMark[] = ".warpsmith.";

// tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SessionLogField { kStatus = 1 };
constexpr uint64_t kSessionStart = 1;
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };

// Wire types of protobuf's encoding.
enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void PutVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void PutTag(int field, WireType type, std::string& out) {
  PutVarint(static_cast<uint64_t>(field) << 3 | type, out);
}

// Little-endian hosts only, as is everything this project runs on.
template <typename T>
void PutFixed(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutBytes(int field, const std::string& bytes, std::string& out) {
  PutTag(field, kBytes, out);
  PutVarint(bytes.size(), out);
  out += bytes;
}

std::string EncodeValue(const NamedScalar& scalar) {
  std::string value;
  PutBytes(kTag, scalar.first, value);
  PutTag(kSimpleValue, kFixed32, value);
  PutFixed(static_cast<float>(scalar.second), value);
  return value;
}

// Begins an event; what it is of follows.
std::string StartEvent(absl::Time now, int64_t step) {
  std::string event;
  PutTag(kWallTime, kFixed64, event);
  PutFixed(absl::ToDoubleSeconds(now - absl::UnixEpoch()), event);
  PutTag(kStep, kVarint, event);
  PutVarint(static_cast<uint64_t>(step), event);
  return event;
}

// Makes a TensorBoard forget what it has read of steps from 0 on, in any file.
std::string ForgetEvent(absl::Time now) {
  std::string start;
  PutTag(kStatus, kVarint, start);
  PutVarint(kSessionStart, start);
  std::string event = StartEvent(now, 0);
  PutBytes(kSessionLog, start, event);
  return event;
}

std::string EncodeEvent(int64_t step, absl::Time now, const std::vector<NamedScalar>& scalars) {
  std::string summary;
  for (const NamedScalar& scalar : scalars) PutBytes(kValue, EncodeValue(scalar), summary);
  std::string event = StartEvent(now, step);
  PutBytes(kSummary, summary, event);
  return event;
}

// The files of earlier attempts, oldest first.
std::vector<std::filesystem::path> OwnFiles(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::StartsWith(name, kNamePrefix) && absl::StrContains(name, kNameMark))
      files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The time of an event of scalars as EncodeEvent makes it: wall time, step, summary. Nothing for another event.
std::optional<absl::Time> TimeOfScalars(std::string_view event) {
  constexpr size_t kTimeAt = 1, kStepAt = kTimeAt + sizeof(double) + 1;
  size_t at = kStepAt;
  while (at < event.size() && (event[at] & 0x80) != 0) ++at;  // a varint ends with its first byte below 0x80
  if (at + 1 >= event.size() || event[at + 1] != (kSummary << 3 | kBytes)) return std::nullopt;
  double seconds = 0;
  std::memcpy(&seconds, event.data() + kTimeAt, sizeof(seconds));
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// Appends the times of the events of scalars in `file`, up to a record that is cut.
absl::Status CollectTimes(const std::filesystem::path& file, std::vector<absl::Time>& times) {
  constexpr size_t kHeadBytes = 8 + 4, kTailBytes = 4;
  ASSIGN_OR_RETURN(const std::string content, ReadFile(file));
  std::string_view rest = content;
  while (rest.size() >= kHeadBytes) {
    uint64_t length = 0;
    std::memcpy(&length, rest.data(), sizeof(length));
    rest.remove_prefix(kHeadBytes);
    if (length > rest.size()) break;
    if (const auto time = TimeOfScalars(rest.substr(0, length)); time.has_value()) times.push_back(*time);
    rest.remove_prefix(std::min<size_t>(rest.size(), length + kTailBytes));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FrameRecord(const std::string& data) {
  std::string length;
  PutFixed(static_cast<uint64_t>(data.size()), length);
  std::string record = length;
  PutFixed(MaskedCrc32c(length), record);
  record += data;
  PutFixed(MaskedCrc32c(data), record);
  return record;
}

absl::StatusOr<TensorboardWriter> TensorboardWriter::Create(const std::filesystem::path& directory,
                                                            absl::Time now,
                                                            const std::vector<ScalarEvent>& former) {
  const std::vector<std::filesystem::path> earlier = OwnFiles(directory);
  std::vector<absl::Time> times;
  for (const auto& file : earlier) RETURN_IF_ERROR(CollectTimes(file, times));
  times.resize(std::max(times.size(), former.size()), now);

  std::string version = StartEvent(now, 0);
  PutBytes(kFileVersion, "brain.Event:2", version);
  std::string content = FrameRecord(version);
  if (!earlier.empty()) content += FrameRecord(ForgetEvent(now));
  for (size_t i = 0; i < former.size(); ++i) {
    content += FrameRecord(EncodeEvent(former[i].step, times[i], former[i].scalars));
  }
  const std::filesystem::path path =
      directory / absl::StrCat(kNamePrefix, absl::ToUnixSeconds(now), kNameMark, getpid());
  // The new file is whole before the others go.
  RETURN_IF_ERROR(WriteFileAtomically(path, content));
  for (const auto& file : earlier) {
    std::error_code ignored;
    if (file != path) std::filesystem::remove(file, ignored);
  }
  ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(path, static_cast<int64_t>(content.size())));
  return TensorboardWriter(std::move(file));
}

TensorboardWriter::TensorboardWriter(AppendFile file) : file_(std::move(file)) {}

absl::Status TensorboardWriter::Write(int64_t step, absl::Time now, const std::vector<NamedScalar>& scalars) {
  return file_.Append(FrameRecord(EncodeEvent(step, now, scalars)));
}

}  // namespace warpsmith
