#include "reward_service/server/batch_reactor.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/rpc/status.h"

namespace warpsmith {
namespace {

constexpr size_t kInFlightMax = 64;

v1::GradeResponse ToResponse(const std::string& request_id, absl::StatusOr<v1::Grade> grade) {
  v1::GradeResponse response;
  response.set_request_id(request_id);
  if (grade.ok()) {
    *response.mutable_grade() = *std::move(grade);
    return response;
  }
  const grpc::Status status = ToGrpcStatus(grade.status());
  response.mutable_error()->set_code(static_cast<int>(status.error_code()));
  response.mutable_error()->set_message(status.error_message());
  if (const std::optional<absl::Duration> delay = GetRetryDelay(grade.status()); delay.has_value()) {
    response.mutable_error()->set_retry_delay_ms(absl::ToInt64Milliseconds(*delay));
  }
  return response;
}

}  // namespace

BatchReactor::BatchReactor(std::shared_ptr<const Tenant> tenant, const Reception* reception)
    : tenant_(std::move(tenant)), reception_(reception) {
  Continue();
}

void BatchReactor::OnReadDone(bool ok) {
  std::shared_ptr<Slot> slot;
  {
    absl::MutexLock lock(&mutex_);
    if (ok) {
      slot = std::make_shared<Slot>();
      slot->request_id = request_.request_id();
      slots_.insert(slot);
    } else {
      ended_ = true;
    }
  }
  if (slot != nullptr) Grade(slot);
  {
    // Only now: a response that comes meanwhile would start the next read into the request being graded.
    absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  Continue();
}

void BatchReactor::Grade(const std::shared_ptr<Slot>& slot) {
  const uint64_t ticket = reception_->Submit(
      tenant_, request_, [this, slot](absl::StatusOr<v1::Grade> grade) { Respond(slot, std::move(grade)); });
  bool unwanted = false;
  {
    absl::MutexLock lock(&mutex_);
    slot->ticket = ticket;
    unwanted = cancelled_;
  }
  if (unwanted) reception_->Cancel(ticket);
}

void BatchReactor::Respond(const std::shared_ptr<Slot>& slot, absl::StatusOr<v1::Grade> grade) {
  {
    absl::MutexLock lock(&mutex_);
    ++num_outside_;  // this thread is not gRPC's: without it, another could end the stream before Continue
    slots_.erase(slot);
    responses_.push_back(ToResponse(slot->request_id, std::move(grade)));
  }
  Continue();
  bool last = false;
  {
    absl::MutexLock lock(&mutex_);
    --num_outside_;
    last = done_ && num_outside_ == 0;
  }
  if (last) delete this;
}

void BatchReactor::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    responses_.pop_front();
  }
  Continue();
}

void BatchReactor::OnCancel() {
  std::vector<uint64_t> tickets;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    cancelled_ = true;
    for (const auto& slot : slots_) tickets.push_back(slot->ticket);
  }
  for (const uint64_t ticket : tickets) reception_->Cancel(ticket);
}

void BatchReactor::OnDone() {
  bool last = false;
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
    last = num_outside_ == 0;
  }
  if (last) delete this;
}

void BatchReactor::Continue() {
  bool read = false, finish = false;
  const v1::GradeResponse* write = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    read = !reading_ && !ended_ && slots_.size() + responses_.size() < kInFlightMax;
    if (!writing_ && !responses_.empty()) write = &responses_.front();
    finish = ended_ && !reading_ && !finished_ && slots_.empty() && responses_.empty();
    reading_ |= read;
    writing_ |= write != nullptr;
    finished_ |= finish;
  }
  if (read) StartRead(&request_);
  if (write != nullptr) StartWrite(write);
  if (finish) Finish(grpc::Status::OK);
}

}  // namespace warpsmith
