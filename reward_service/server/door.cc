#include "reward_service/server/door.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "core/rpc/status.h"
#include "reward_service/server/batch_reactor.h"

namespace warpsmith {
namespace {

Credentials CredentialsOf(const grpc::CallbackServerContext& context) {
  Credentials credentials;
  const auto found = context.client_metadata().find("authorization");
  if (found != context.client_metadata().end()) {
    credentials.authorization = std::string(found->second.data(), found->second.size());
  }
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (!peer->IsPeerAuthenticated()) return credentials;
  for (const grpc::string_ref& name : peer->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
    credentials.certificate_name = std::string(name.data(), name.size());
  }
  return credentials;
}

// Answers one unary call. Deletes itself when gRPC is done with it.
class GradeReactor final : public grpc::ServerUnaryReactor {
 public:
  GradeReactor(const Reception* reception, v1::GradeResponse* response)
      : reception_(reception), response_(response) {}

  void Start(std::shared_ptr<const Tenant> tenant, const v1::GradeRequest& request) {
    holders_ = 2;  // gRPC's OnDone and this function
    const auto answer = [this](absl::StatusOr<v1::Grade> grade) {
      if (grade.ok()) {
        *response_->mutable_grade() = *std::move(grade);
        response_->set_request_id(response_->grade().request_id());
      }
      Finish(ToGrpcStatus(grade.status()));
    };
    const uint64_t ticket = reception_->Submit(std::move(tenant), request, answer);
    ticket_ = ticket;
    if (cancelled_) reception_->Cancel(ticket);
    Release();
  }

  void Refuse(const absl::Status& status) {
    holders_ = 1;
    Finish(ToGrpcStatus(status));
  }

  void OnCancel() override {
    cancelled_ = true;
    reception_->Cancel(ticket_);
  }

  void OnDone() override { Release(); }

 private:
  void Release() {
    if (holders_.fetch_sub(1) == 1) delete this;
  }

  const Reception* const reception_;
  v1::GradeResponse* const response_;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<bool> cancelled_{false};
  std::atomic<int> holders_{0};
};

// A stream whose caller is nobody.
class RefusedStream final : public grpc::ServerBidiReactor<v1::GradeRequest, v1::GradeResponse> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* RewardDoor::Grade(grpc::CallbackServerContext* context,
                                            const v1::GradeRequest* request, v1::GradeResponse* response) {
  auto* reactor = new GradeReactor(reception_, response);
  absl::StatusOr<std::shared_ptr<const Tenant>> tenant = reception_->Identify(CredentialsOf(*context));
  if (tenant.ok()) {
    reactor->Start(*std::move(tenant), *request);
  } else {
    reactor->Refuse(tenant.status());
  }
  return reactor;
}

grpc::ServerBidiReactor<v1::GradeRequest, v1::GradeResponse>* RewardDoor::GradeBatch(
    grpc::CallbackServerContext* context) {
  absl::StatusOr<std::shared_ptr<const Tenant>> tenant = reception_->Identify(CredentialsOf(*context));
  if (!tenant.ok()) return new RefusedStream(tenant.status());
  return new BatchReactor(*std::move(tenant), reception_);
}

grpc::ServerUnaryReactor* RewardDoor::GetCapabilities(grpc::CallbackServerContext* context,
                                                      const v1::GetCapabilitiesRequest* request,
                                                      v1::GetCapabilitiesResponse* response) {
  const absl::Status caller = reception_->Identify(CredentialsOf(*context)).status();
  if (caller.ok()) *response->mutable_capabilities() = reception_->capabilities();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(caller));
  return reactor;
}

}  // namespace warpsmith
