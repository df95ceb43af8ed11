#include "core/rpc/channel.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/rpc/health_message.h"
#include "core/rpc/status.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kRegistrationTime = absl::Milliseconds(500);

// The generated stub of grpc.health.v1 is not packaged, so its Watch is called by name, on messages as bytes.
class HealthWatch {
 public:
  HealthWatch(const std::shared_ptr<grpc::Channel>& channel, absl::Time deadline) : stub_(channel) {
    context_.set_deadline(absl::ToChronoTime(deadline));
    context_.set_wait_for_ready(true);
    call_ = stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_);
  }

  ~HealthWatch() {
    queue_.Shutdown();
    while (Next()) {
    }
  }

  // Until the service is serving (OK), or the stream ends (its error).
  absl::Status Run(const std::string& service) {
    call_->StartCall(nullptr);
    bool open = Next();
    if (open) {
      call_->WriteLast(ToByteBuffer(EncodeHealthCheckRequest(service)), grpc::WriteOptions(), nullptr);
      open = Next();
    }
    absl::Time patience = absl::InfiniteFuture();
    while (open) {
      grpc::ByteBuffer response;
      call_->Read(&response, nullptr);
      if (!Next(patience)) break;
      last_ = DecodeHealthCheckResponse(FromByteBuffer(response));
      if (last_ == HealthStatus::kServing) context_.TryCancel();
      // A server that starts listens for a moment before its health check knows its services.
      patience =
          last_ == HealthStatus::kServiceUnknown ? absl::Now() + kRegistrationTime : absl::InfiniteFuture();
    }
    return Finish(service);
  }

 private:
  // Waits for the one operation in flight; the call's deadline bounds it, and so does `patience`, which ends
  // the call. False if it failed or the queue is empty.
  bool Next(absl::Time patience = absl::InfiniteFuture()) {
    void* tag = nullptr;
    bool ok = false;
    const auto event = queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(patience));
    if (event != grpc::CompletionQueue::TIMEOUT) return event == grpc::CompletionQueue::GOT_EVENT && ok;
    context_.TryCancel();
    return queue_.Next(&tag, &ok) && ok;
  }

  absl::Status Finish(const std::string& service) {
    grpc::Status end;
    call_->Finish(&end, nullptr);
    Next();
    if (last_ == HealthStatus::kServing) return absl::OkStatus();
    if (last_ == HealthStatus::kServiceUnknown) {
      return absl::NotFoundError(absl::StrCat("the server has no service ", service));
    }
    if (end.ok()) return absl::UnavailableError("the server ended the health check");
    return FromGrpcStatus(end);
  }

  static grpc::ByteBuffer ToByteBuffer(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return grpc::ByteBuffer(&slice, 1);
  }

  static std::string FromByteBuffer(const grpc::ByteBuffer& buffer) {
    grpc::Slice slice;
    if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
    return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  HealthStatus last_ = HealthStatus::kUnknown;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ChannelOptions& options) {
  if (options.encryption == Encryption::kNone) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.tls.authority;
  ssl.pem_private_key = options.tls.key;
  ssl.pem_cert_chain = options.tls.certificate;
  std::shared_ptr<grpc::ChannelCredentials> channel = grpc::SslCredentials(ssl);
  if (options.token.empty()) return channel;
  return grpc::CompositeChannelCredentials(channel, grpc::AccessTokenCredentials(options.token));
}

constexpr char kSystemAuthorities[] = "system";
constexpr int64_t kTokenBytesMax = 4096;

}  // namespace

absl::StatusOr<ChannelOptions> ReadChannelFiles(const ChannelFiles& files) {
  ChannelOptions options;
  TlsFiles tls = files.tls;
  if (!tls.empty()) options.encryption = Encryption::kTls;
  if (tls.authority == kSystemAuthorities) tls.authority.clear();
  ASSIGN_OR_RETURN(options.tls, ReadTls(tls));
  if (files.token_file.empty()) return options;
  if (options.encryption == Encryption::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the token of ", files.token_file.string(),
        " may travel encrypted only: name the authority of the server's certificate, or 'system'"));
  }
  ASSIGN_OR_RETURN(const std::string token, ReadFile(files.token_file, kTokenBytesMax));
  options.token = std::string(absl::StripAsciiWhitespace(token));
  return options;
}

std::shared_ptr<grpc::Channel> CreateChannel(const std::string& address, const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA,
                   0);  // a long grading sends no data, yet must be watched
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // cluster-internal traffic, whatever http_proxy says
  arguments.SetLoadBalancingPolicyName("round_robin");
  return grpc::CreateCustomChannel(address, CredentialsOf(options), arguments);
}

void SetTimeout(grpc::ClientContext* context, absl::Duration timeout) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

absl::Status WaitUntilServing(const std::shared_ptr<grpc::Channel>& channel, const std::string& service,
                              absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::Status status;
  // A stream that breaks off is opened anew: a server that restarts breaks it once or twice.
  constexpr int kStreamsMax = 100;
  for (int stream = 0; stream < kStreamsMax; ++stream) {
    status = HealthWatch(channel, deadline).Run(service);
    if (!absl::IsUnavailable(status)) break;
  }
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(absl::StrCat(service.empty() ? "the server" : service,
                                                  " is not serving after ", absl::FormatDuration(timeout)));
}

}  // namespace warpsmith
