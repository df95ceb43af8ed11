// Server side of every process: services with the standard health and reflection services beside them.
#ifndef WARPSMITH_CORE_RPC_SERVER_H_
#define WARPSMITH_CORE_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/rpc/tls.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"

namespace warpsmith {

struct RpcServerOptions {
  // "host:port", port 0 for any free one, or "unix:/path".
  std::string address = "127.0.0.1:0";
  // Where a user chooses it, "reward_service.address", say; for the error of one that is taken.
  std::string address_key;
  // Empty: no encryption, for one machine or a trusted network.
  TlsIdentity tls;
  // Calls in flight that block a thread each. Beyond it gRPC answers RESOURCE_EXHAUSTED without RetryInfo, so
  // services refuse earlier by themselves.
  int num_threads_max = 1024;
};

enum class Serving { kNo, kYes };

// One service of a server; it must outlive the server. `name` is its full name, e.g.
// RewardService::service_full_name().
struct RpcService {
  std::string name;
  grpc::Service* service = nullptr;
};

// Owns a running server. Methods may be called from any thread.
class RpcServer {
 public:
  // Binds and serves. Every service starts as kNo: say SetServing when it can take calls (calls are answered
  // from the start). INVALID_ARGUMENT for an address that cannot be used, ALREADY_EXISTS for one in use.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options,
                                                          const std::vector<RpcService>& services);

  // Shuts down with no grace unless Shutdown was called.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // What a client dials: the given address with the port that was bound.
  const std::string& address() const { return address_; }

  // The bound port; 0 for a Unix socket.
  int port() const { return port_; }

  // What the health service says of one service, by its full name.
  void SetServing(const std::string& service_name, Serving serving);

  // Refuses new calls and lets those in flight end for `grace`, then cancels them and returns once their
  // handlers have returned: a handler that ignores cancellation holds it up. The health service says "not
  // serving" from the start.
  void Shutdown(absl::Duration grace);

  // Blocks until Shutdown was called elsewhere and is done.
  void Wait();

 private:
  RpcServer(std::unique_ptr<grpc::Server> server, std::string address, int port);

  const std::unique_ptr<grpc::Server> server_;
  const std::string address_;
  const int port_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_SERVER_H_
