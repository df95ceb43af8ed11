#include "reward_service/service/door.h"

#include <atomic>
#include <memory>

#include "core/rpc/status.h"
#include "reward_service/service/batch_reactor.h"

namespace warpsmith {
namespace {

// Answers one unary call. Deletes itself when gRPC is done with it.
class GradeReactor final : public grpc::ServerUnaryReactor {
 public:
  GradeReactor(Grader* grader, v1::GradeResponse* response) : grader_(grader), response_(response) {}

  void Start(std::shared_ptr<const PreparedRequest> prepared) {
    holders_ = 2;  // gRPC's OnDone and this function
    const uint64_t ticket = grader_->Submit(std::move(prepared), [this](absl::StatusOr<v1::Grade> grade) {
      if (grade.ok()) {
        *response_->mutable_grade() = *std::move(grade);
        response_->set_request_id(response_->grade().request_id());
      }
      Finish(ToGrpcStatus(grade.status()));
    });
    ticket_ = ticket;
    if (cancelled_) grader_->Cancel(ticket);
    Release();
  }

  void Refuse(const absl::Status& status) {
    holders_ = 1;
    Finish(ToGrpcStatus(status));
  }

  void OnCancel() override {
    cancelled_ = true;
    grader_->Cancel(ticket_);
  }

  void OnDone() override { Release(); }

 private:
  void Release() {
    if (holders_.fetch_sub(1) == 1) delete this;
  }

  Grader* const grader_;
  v1::GradeResponse* const response_;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<bool> cancelled_{false};
  std::atomic<int> holders_{0};
};

}  // namespace

grpc::ServerUnaryReactor* RewardDoor::Grade(grpc::CallbackServerContext* context,
                                            const v1::GradeRequest* request, v1::GradeResponse* response) {
  auto* reactor = new GradeReactor(grader_, response);
  absl::StatusOr<PreparedRequest> prepared =
      PrepareRequest(*request, options_.limits, options_.environment_key);
  if (prepared.ok()) {
    reactor->Start(std::make_shared<const PreparedRequest>(*std::move(prepared)));
  } else {
    reactor->Refuse(prepared.status());
  }
  return reactor;
}

grpc::ServerBidiReactor<v1::GradeRequest, v1::GradeResponse>* RewardDoor::GradeBatch(
    grpc::CallbackServerContext* context) {
  return new BatchReactor(options_.limits, options_.environment_key, grader_);
}

grpc::ServerUnaryReactor* RewardDoor::GetCapabilities(grpc::CallbackServerContext* context,
                                                      const v1::GetCapabilitiesRequest* request,
                                                      v1::GetCapabilitiesResponse* response) {
  *response->mutable_capabilities() = options_.capabilities;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace warpsmith
