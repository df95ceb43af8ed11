#include "core/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/rpc/server_address.h"

namespace warpsmith {
namespace {

void SetLimits(const RpcServerOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMessageBytesMax);
  builder->SetMaxSendMessageSize(kMessageBytesMax);
  grpc::ResourceQuota quota("server");
  quota.SetMaxThreads(options.num_threads_max);
  builder->SetResourceQuota(quota);
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                              0);  // else two servers share a port, and calls, unnoticed
  // The clients of core/rpc ping every 30 s, with calls that send no data.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const TlsIdentity& tls) {
  if (tls.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(tls.authority.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls.authority;
  options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            const std::vector<RpcService>& services) {
  ASSIGN_OR_RETURN(const ServerAddress address, ParseServerAddress(options.address));
  if (!address.socket_path.empty()) {
    RETURN_IF_ERROR(NameAddressKey(CheckSocketFree(address.socket_path), options.address_key));
  }
  // Both are process-wide switches of gRPC that take effect on servers built afterwards; repeating them is
  // harmless.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  grpc::ServerBuilder builder;
  SetLimits(options, &builder);
  int bound_port = 0;
  builder.AddListeningPort(options.address, CredentialsOf(options.tls), &bound_port);
  for (const RpcService& service : services) builder.RegisterService(service.service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || bound_port <= 0) {
    return NameAddressKey(
        absl::AlreadyExistsError(absl::StrCat("cannot listen at ", options.address,
                                              ": in use, not of this machine, or not permitted")),
        options.address_key);
  }
  const int port = address.socket_path.empty() ? bound_port : 0;
  std::unique_ptr<RpcServer> started(
      new RpcServer(std::move(server), FormatServerAddress(address, port), port));
  for (const RpcService& service : services) started->SetServing(service.name, Serving::kNo);
  return started;
}

RpcServer::RpcServer(std::unique_ptr<grpc::Server> server, std::string address, int port)
    : server_(std::move(server)), address_(std::move(address)), port_(port) {}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

void RpcServer::SetServing(const std::string& service_name, Serving serving) {
  server_->GetHealthCheckService()->SetServingStatus(service_name, serving == Serving::kYes);
}

void RpcServer::Shutdown(absl::Duration grace) {
  server_->GetHealthCheckService()->Shutdown();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
}

void RpcServer::Wait() { server_->Wait(); }

}  // namespace warpsmith
