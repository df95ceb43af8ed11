#include "core/rpc/health_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace warpsmith {
namespace {

using WireFormat = google::protobuf::internal::WireFormatLite;

constexpr int kServiceField = 1;
constexpr int kStatusField = 1;

}  // namespace

std::string EncodeHealthCheckRequest(const std::string& service) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.WriteTag(WireFormat::MakeTag(kServiceField, WireFormat::WIRETYPE_LENGTH_DELIMITED));
  out.WriteVarint32(static_cast<uint32_t>(service.size()));
  out.WriteString(service);
  out.Trim();
  return bytes;
}

HealthStatus DecodeHealthCheckResponse(std::string_view bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  HealthStatus status = HealthStatus::kUnknown;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != WireFormat::MakeTag(kStatusField, WireFormat::WIRETYPE_VARINT)) {
      if (!WireFormat::SkipField(&in, tag)) return HealthStatus::kUnknown;
      continue;
    }
    uint32_t value = 0;
    if (!in.ReadVarint32(&value) || value > 3) return HealthStatus::kUnknown;
    status = static_cast<HealthStatus>(value);
  }
  return status;
}

}  // namespace warpsmith
