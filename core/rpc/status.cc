#include "core/rpc/status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/utf8.h"
#include "core/rpc/error_details.h"

namespace warpsmith {
namespace {

// Far below the 8 KiB of headers that a peer takes, message included.
constexpr size_t kDetailBytesMax = 2048;

std::string MessageForWire(absl::string_view message) {
  const std::string valid = ReplaceInvalidUtf8(StdView(message));
  if (valid.size() <= kStatusMessageBytesMax) return valid;
  constexpr std::string_view kMark = "...";
  std::string cut(CutUtf8(valid, kStatusMessageBytesMax - kMark.size()));
  cut += kMark;
  return cut;
}

absl::Duration Bounded(absl::Duration delay) {
  return std::clamp(delay, absl::ZeroDuration(), absl::Hours(24));
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  ErrorDetails details{.code = static_cast<int>(status.code()), .message = MessageForWire(status.message())};
  size_t num_bytes = 0;
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    num_bytes += type_url.size() + payload.size();
    if (num_bytes > kDetailBytesMax) return;
    details.details.push_back({std::string(type_url), std::string(payload)});
  });
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (details.details.empty()) return grpc::Status(code, details.message);
  return grpc::Status(code, details.message, EncodeErrorDetails(details));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status converted(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  const std::optional<ErrorDetails> details = DecodeErrorDetails(status.error_details());
  if (!details.has_value()) return converted;
  for (const ErrorDetail& detail : details->details) {
    converted.SetPayload(detail.type_url, absl::Cord(detail.value));
  }
  return converted;
}

absl::Status BackPressureError(std::string_view message, absl::Duration retry_delay) {
  absl::Status status = absl::ResourceExhaustedError(AbslView(message));
  SetRetryDelay(&status, retry_delay);
  return status;
}

bool IsBackPressure(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && GetRetryDelay(status).has_value();
}

void SetRetryDelay(absl::Status* status, absl::Duration delay) {
  WS_CHECK(!status->ok()) << "only an error is retried";
  status->SetPayload(kRetryInfoTypeUrl, absl::Cord(EncodeRetryInfo(Bounded(delay))));
}

std::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryInfoTypeUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::optional<absl::Duration> delay = DecodeRetryInfo(std::string(*payload));
  if (!delay.has_value()) return std::nullopt;
  return Bounded(*delay);
}

}  // namespace warpsmith
