// Failed calls in words for whoever gave the address.
#ifndef WARPSMITH_CORE_RPC_CALL_FAILURE_H_
#define WARPSMITH_CORE_RPC_CALL_FAILURE_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpsmith {

// What was called. The views outlive the call.
struct CalledServer {
  std::string_view address;
  std::string_view kind;     // of server, in a user's words
  std::string_view way_out;  // where nobody answers; may be empty
  // What may be there instead: the full name of its service, and its kind.
  std::string_view other_service;
  std::string_view other_kind;
};

// The error of a call on `channel` with its code. Where nobody answered, it says so, with gRPC's reason cut short.
// Where a server did that has no such method, it says that this is another one, and which if its health service tells
// so within 1.5 s. Any other error, in the server's own words, stays as it is.
absl::Status ExplainCallFailure(const absl::Status& error, const std::shared_ptr<grpc::Channel>& channel,
                                const CalledServer& server);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_CALL_FAILURE_H_
