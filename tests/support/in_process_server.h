// A gRPC server without sockets.
#ifndef WARPSMITH_TESTS_SUPPORT_IN_PROCESS_SERVER_H_
#define WARPSMITH_TESTS_SUPPORT_IN_PROCESS_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

namespace warpsmith {

// Serves one service, which must outlive it, through channels that pass messages within the process.
class InProcessServer {
 public:
  explicit InProcessServer(grpc::Service* service) {
    grpc::ServerBuilder builder;
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel(grpc::ChannelArguments());
  }
  // Cancels what is left and waits for its handlers.
  ~InProcessServer() { server_->Shutdown(std::chrono::system_clock::now()); }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_IN_PROCESS_SERVER_H_
