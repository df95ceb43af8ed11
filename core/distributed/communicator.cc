#include "core/distributed/communicator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace warpsmith {

int64_t ElementBytes(ElementType type) { return type == ElementType::kFloat32 ? 4 : 8; }

Communicator::Communicator(ControlPlane* control, const CommunicatorOptions& options,
                           std::unique_ptr<CollectiveBackend> backend)
    : control_(control),
      options_(options),
      backend_(std::move(backend)),
      recorder_(options.num_records),
      watchdog_([this] { OnExpiry(); }),
      listener_(control, [this] { watchdog_.Expire(); }) {}

absl::Status Communicator::AllReduceSum(void* data, int64_t count, ElementType type, CollectiveLabel label) {
  return Run("all_reduce", count * ElementBytes(type), label,
             [&](int64_t sequence) { return backend_->AllReduceSum(data, count, type, sequence); });
}

absl::Status Communicator::Broadcast(void* data, int64_t num_bytes, int root, CollectiveLabel label) {
  WS_CHECK(0 <= root && root < size()) << "root " << root << " of " << size();
  return Run("broadcast", num_bytes, label,
             [&](int64_t sequence) { return backend_->Broadcast(data, num_bytes, root, sequence); });
}

absl::Status Communicator::AllGather(const void* send, void* receive, int64_t num_bytes,
                                     CollectiveLabel label) {
  return Run("all_gather", num_bytes, label,
             [&](int64_t sequence) { return backend_->AllGather(send, receive, num_bytes, sequence); });
}

absl::Status Communicator::Barrier(CollectiveLabel label) {
  return Run("barrier", 0, label, [&](int64_t sequence) { return backend_->Barrier(sequence); });
}

void Communicator::Abort(const absl::Status& reason) {
  WS_CHECK(!reason.ok()) << "an abort needs a reason";
  {
    absl::MutexLock lock(&mutex_);
    if (!error_.ok()) return;
    error_ = reason;
  }
  backend_->Interrupt();
}

absl::Status Communicator::Run(std::string_view operation, int64_t num_bytes, CollectiveLabel label,
                               absl::FunctionRef<absl::Status(int64_t sequence)> call) {
  if (absl::Status broken = first_error(); !broken.ok()) return broken;
  const CollectiveRecord record = recorder_.Begin(operation, label.name, label.phase, num_bytes);
  watchdog_.Arm(absl::Now() + options_.deadline);
  // Only now: a group that breaks from here on finds the watchdog armed.
  if (!control_->status().ok()) watchdog_.Expire();
  absl::Status status = call(record.sequence);
  watchdog_.Disarm();
  recorder_.End(record.sequence, !status.ok());
  if (status.ok()) return status;

  if (first_error().ok()) status = control_->CauseOf(status);
  Abort(absl::Status(status.code(), absl::StrCat("rank ", rank(), " of ", size(), ": ",
                                                 DescribeCollective(record), " failed: ", status.message())));
  return first_error();
}

void Communicator::OnExpiry() {
  const CollectiveRecord last = recorder_.Records().back();
  const absl::Status broken = control_->status();
  if (!broken.ok()) {
    return Abort(absl::Status(broken.code(),
                              absl::StrCat("rank ", rank(), " of ", size(), ": ", DescribeCollective(last),
                                           " was ended: ", broken.message())));
  }
  LogError(absl::StrCat("rank ", rank(), ": a collective passed its deadline of ",
                        absl::FormatDuration(options_.deadline), "; the last ones were:\n",
                        recorder_.Report()));
  Abort(absl::DeadlineExceededError(absl::StrCat(
      "rank ", rank(), " of ", size(), ": ", DescribeCollective(last), " passed its deadline of ",
      absl::FormatDuration(options_.deadline), "; look for the rank that did not reach it")));
}

absl::Status Communicator::first_error() const {
  absl::MutexLock lock(&mutex_);
  return error_;
}

}  // namespace warpsmith
