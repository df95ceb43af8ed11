// Client side of every connection.
#ifndef WARPSMITH_CORE_RPC_CHANNEL_H_
#define WARPSMITH_CORE_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/rpc/tls.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

namespace warpsmith {

// Both directions, on every server and channel. gRPC answers RESOURCE_EXHAUSTED to what is larger.
inline constexpr int kMessageBytesMax = 32 << 20;

enum class Encryption { kNone, kTls };

struct ChannelOptions {
  // Without: for one machine or a trusted network.
  Encryption encryption = Encryption::kNone;
  TlsIdentity tls;
  // Identifies the caller in each call ("authorization: Bearer TOKEN"); needs encryption.
  std::string token;
};

// Of what a user wrote. INVALID_ARGUMENT for a token without encryption, and as ReadTls; otherwise what
// reading says.
absl::StatusOr<ChannelOptions> ReadChannelFiles(const ChannelFiles& files);

// A channel to "host:port", "unix:/path", or several equal servers: a name with several addresses, or
// "ipv4:10.0.0.1:50061,10.0.0.2:50061"; calls go to them in turn. Returns at once; connects when used and
// again, with at most 5 s between attempts, when lost. A peer that is gone without a word is noticed by
// keepalive within 40 s.
std::shared_ptr<grpc::Channel> CreateChannel(const std::string& address, const ChannelOptions& options = {});

// Sets the deadline of one call.
void SetTimeout(grpc::ClientContext* context, absl::Duration timeout);

// Waits until the standard health service at the other end says that `service` (its full name; empty: the
// server) is serving, also while the server is not there yet. DEADLINE_EXCEEDED after `timeout`; NOT_FOUND at
// once if the server does not know the service; UNIMPLEMENTED without health service.
absl::Status WaitUntilServing(const std::shared_ptr<grpc::Channel>& channel, const std::string& service,
                              absl::Duration timeout);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_CHANNEL_H_
