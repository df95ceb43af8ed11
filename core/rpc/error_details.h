// Wire form of google.rpc.Status and google.rpc.RetryInfo.
//
// Their generated code is not packaged, and registering a second copy of these protos would clash with a
// library that brings them, so the four fields in use are written by hand: google/rpc/status.proto (code 1,
// message 2, details 3), google/rpc/error_details.proto (RetryInfo.retry_delay 1).
#ifndef WARPSMITH_CORE_RPC_ERROR_DETAILS_H_
#define WARPSMITH_CORE_RPC_ERROR_DETAILS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace warpsmith {

inline constexpr char kRetryInfoTypeUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

// google.protobuf.Any.
struct ErrorDetail {
  std::string type_url;
  std::string value;
};

// google.rpc.Status.
struct ErrorDetails {
  int code = 0;
  std::string message;
  std::vector<ErrorDetail> details;
};

std::string EncodeErrorDetails(const ErrorDetails& details);

// Nothing if `bytes` is not such a message. Unknown fields are skipped; at most 64 details are read.
std::optional<ErrorDetails> DecodeErrorDetails(std::string_view bytes);

std::string EncodeRetryInfo(absl::Duration retry_delay);
std::optional<absl::Duration> DecodeRetryInfo(std::string_view bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_ERROR_DETAILS_H_
