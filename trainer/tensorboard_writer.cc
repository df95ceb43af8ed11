#include "trainer/tensorboard_writer.h"

#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "trainer/crc32c.h"

namespace warpsmith {
namespace {

// tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
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

std::string StartEvent(absl::Time now, int64_t step) {
  std::string event;
  PutTag(kWallTime, kFixed64, event);
  PutFixed(absl::ToDoubleSeconds(now - absl::UnixEpoch()), event);
  PutTag(kStep, kVarint, event);
  PutVarint(static_cast<uint64_t>(step), event);
  return event;
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
                                                            absl::Time now) {
  const std::filesystem::path path =
      directory / absl::StrCat("events.out.tfevents.", absl::ToUnixSeconds(now), ".warpsmith.", getpid());
  ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(path, 0));
  std::string version = StartEvent(now, 0);
  PutBytes(kFileVersion, "brain.Event:2", version);
  RETURN_IF_ERROR(file.Append(FrameRecord(version)));

  return TensorboardWriter(std::move(file));
}

TensorboardWriter::TensorboardWriter(AppendFile file) : file_(std::move(file)) {}

absl::Status TensorboardWriter::Write(int64_t step, absl::Time now, const std::vector<NamedScalar>& scalars) {
  std::string summary;
  for (const NamedScalar& scalar : scalars) PutBytes(kValue, EncodeValue(scalar), summary);
  std::string event = StartEvent(now, step);
  PutBytes(kSummary, summary, event);
  return file_.Append(FrameRecord(event));
}

}  // namespace warpsmith
