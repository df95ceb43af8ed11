// Errors across the wire, converted in this one place.
//
// absl::Status and grpc::Status share their codes. Details travel as google.rpc.Status in gRPC's error
// details, each a payload of absl::Status under its type URL, so that e.g. google.rpc.RetryInfo reaches
// clients in any language.
#ifndef WARPSMITH_CORE_RPC_STATUS_H_
#define WARPSMITH_CORE_RPC_STATUS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace warpsmith {

// Longer messages are cut: they travel in HTTP/2 headers, which peers bound at 8 KiB.
inline constexpr size_t kStatusMessageBytesMax = 1024;

// Invalid UTF-8 in the message is replaced.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Details that cannot be read are left out; code and message always arrive.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Back-pressure: RESOURCE_EXHAUSTED that tells the caller when to come back. Without RetryInfo,
// RESOURCE_EXHAUSTED means that retrying is of no use, as gRPC's own answer to a message over its limit.
absl::Status BackPressureError(std::string_view message, absl::Duration retry_delay);

bool IsBackPressure(const absl::Status& status);

// Attaches google.rpc.RetryInfo to an error. `delay` is at least zero and at most a day.
void SetRetryDelay(absl::Status* status, absl::Duration delay);

// The delay that RetryInfo of `status` names, in the same bounds; nothing without one that can be read.
std::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_STATUS_H_
