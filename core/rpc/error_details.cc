#include "core/rpc/error_details.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace warpsmith {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using WireFormat = google::protobuf::internal::WireFormatLite;

constexpr int kCodeField = 1;
constexpr int kMessageField = 2;
constexpr int kDetailsField = 3;
constexpr int kRetryDelayField = 1;
constexpr size_t kDetailsMax = 64;

constexpr uint32_t Tag(int field, WireFormat::WireType type) { return WireFormat::MakeTag(field, type); }

void WriteBytes(int field, const std::string& bytes, CodedOutputStream* out) {
  out->WriteTag(Tag(field, WireFormat::WIRETYPE_LENGTH_DELIMITED));
  out->WriteVarint32(static_cast<uint32_t>(bytes.size()));
  out->WriteString(bytes);
}

bool ReadBytes(CodedInputStream* in, std::string* bytes) {
  uint32_t num_bytes = 0;
  if (!in->ReadVarint32(&num_bytes) || num_bytes > static_cast<uint32_t>(in->BytesUntilLimit())) return false;
  return in->ReadString(bytes, static_cast<int>(num_bytes));
}

bool ReadDetail(CodedInputStream* in, std::vector<ErrorDetail>* details) {
  std::string bytes;
  google::protobuf::Any any;
  if (!ReadBytes(in, &bytes) || !any.ParseFromString(bytes)) return false;
  if (details->size() < kDetailsMax) details->push_back({any.type_url(), any.value()});
  return true;
}

// Calls read_field(tag, stream) for each field of the message in `bytes` until one cannot be read.
template <typename ReadField>
bool ReadMessage(std::string_view bytes, ReadField read_field) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  in.PushLimit(static_cast<int>(bytes.size()));
  while (in.BytesUntilLimit() > 0) {
    const uint32_t tag = in.ReadTag();
    if (tag == 0 || !read_field(tag, &in)) return false;
  }
  return true;
}

}  // namespace

std::string EncodeErrorDetails(const ErrorDetails& details) {
  std::string bytes;
  StringOutputStream stream(&bytes);
  CodedOutputStream out(&stream);
  out.WriteTag(Tag(kCodeField, WireFormat::WIRETYPE_VARINT));
  out.WriteVarint32SignExtended(details.code);
  WriteBytes(kMessageField, details.message, &out);
  for (const ErrorDetail& detail : details.details) {
    google::protobuf::Any any;
    any.set_type_url(detail.type_url);
    any.set_value(detail.value);
    WriteBytes(kDetailsField, any.SerializeAsString(), &out);
  }
  out.Trim();
  return bytes;
}

std::optional<ErrorDetails> DecodeErrorDetails(std::string_view bytes) {
  ErrorDetails decoded;
  const auto read_field = [&](uint32_t tag, CodedInputStream* in) {
    switch (tag) {
      case Tag(kCodeField, WireFormat::WIRETYPE_VARINT): {
        uint64_t code = 0;
        if (!in->ReadVarint64(&code)) return false;
        decoded.code = static_cast<int>(code);
        return true;
      }
      case Tag(kMessageField, WireFormat::WIRETYPE_LENGTH_DELIMITED):
        return ReadBytes(in, &decoded.message);
      case Tag(kDetailsField, WireFormat::WIRETYPE_LENGTH_DELIMITED):
        return ReadDetail(in, &decoded.details);
      default:
        return WireFormat::SkipField(in, tag);
    }
  };
  if (!ReadMessage(bytes, read_field)) return std::nullopt;
  return decoded;
}

std::string EncodeRetryInfo(absl::Duration retry_delay) {
  google::protobuf::Duration delay;
  absl::Duration rest;
  delay.set_seconds(absl::IDivDuration(retry_delay, absl::Seconds(1), &rest));
  delay.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  std::string bytes;
  StringOutputStream stream(&bytes);
  CodedOutputStream out(&stream);
  WriteBytes(kRetryDelayField, delay.SerializeAsString(), &out);
  out.Trim();
  return bytes;
}

std::optional<absl::Duration> DecodeRetryInfo(std::string_view bytes) {
  google::protobuf::Duration delay;
  const auto read_field = [&](uint32_t tag, CodedInputStream* in) {
    if (tag != Tag(kRetryDelayField, WireFormat::WIRETYPE_LENGTH_DELIMITED))
      return WireFormat::SkipField(in, tag);
    std::string nested;
    return ReadBytes(in, &nested) && delay.ParseFromString(nested);
  };
  if (!ReadMessage(bytes, read_field)) return std::nullopt;
  return absl::Seconds(delay.seconds()) + absl::Nanoseconds(delay.nanos());
}

}  // namespace warpsmith
