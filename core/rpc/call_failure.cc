#include "core/rpc/call_failure.h"

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/rpc/channel.h"

namespace warpsmith {
namespace {

// Longer than a server that lacks a service takes to say so.
constexpr absl::Duration kLook = absl::Milliseconds(1500);
constexpr size_t kReasonBytesMax = 200;

// Whether the server at the other end has `service`. One that it does not offer yet is known all the same.
bool Has(const std::shared_ptr<grpc::Channel>& channel, std::string_view service) {
  const absl::Status status = WaitUntilServing(channel, std::string(service), kLook);
  return status.ok() || absl::IsDeadlineExceeded(status);
}

// The last clause of gRPC's chain of reasons: "...: Failed to connect to remote host: Connection refused".
std::string ShortReason(std::string_view message) {
  if (message.find("http1.x server") != std::string_view::npos)
    return "HTTP/1 is spoken there, not gRPC: give the gRPC address";
  const size_t colon = message.rfind(": ");
  if (colon != std::string_view::npos) message.remove_prefix(colon + 2);
  return Escape(message, kReasonBytesMax);
}

}  // namespace

absl::Status ExplainCallFailure(const absl::Status& error, const std::shared_ptr<grpc::Channel>& channel,
                                const CalledServer& server) {
  if (absl::IsUnimplemented(error)) {
    const std::string other =
        Has(channel, server.other_service) ? absl::StrCat(" (", AbslView(server.other_kind), ")") : "";
    return absl::UnimplementedError(absl::StrCat(AbslView(server.address), " is not a ",
                                                 AbslView(server.kind), other, ": give the address of one"));
  }
  const bool unreachable = (absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error)) &&
                           channel->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY;
  if (!unreachable) return error;
  return absl::Status(
      error.code(), absl::StrCat("no ", AbslView(server.kind), " answers at ", AbslView(server.address), " (",
                                 ShortReason(StdView(error.message())), ")",
                                 server.way_out.empty() ? "" : "; ", AbslView(server.way_out)));
}

}  // namespace warpsmith
