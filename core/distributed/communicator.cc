#include "core/distributed/communicator.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace warpsmith {

int64_t ElementBytes(ElementType type) { return type == ElementType::kFloat32 ? 4 : 8; }

Communicator::Communicator(int rank, int size, const CommunicatorOptions& options)
    : rank_(rank), size_(size), options_(options), recorder_(options.num_records) {
  WS_CHECK(0 <= rank && rank < size) << "rank " << rank << " of " << size;
  watchdog_.emplace([this] { OnDeadline(); });
}

absl::Status Communicator::AllReduceSum(void* data, int64_t count, ElementType type, CollectiveLabel label) {
  return Run("all_reduce", count * ElementBytes(type), label,
             [&] { return DoAllReduceSum(data, count, type); });
}

absl::Status Communicator::Broadcast(void* data, int64_t num_bytes, int root, CollectiveLabel label) {
  WS_CHECK(0 <= root && root < size_) << "root " << root << " of " << size_;
  return Run("broadcast", num_bytes, label, [&] { return DoBroadcast(data, num_bytes, root); });
}

absl::Status Communicator::AllGather(const void* send, void* receive, int64_t num_bytes,
                                     CollectiveLabel label) {
  return Run("all_gather", num_bytes, label, [&] { return DoAllGather(send, receive, num_bytes); });
}

absl::Status Communicator::Barrier(CollectiveLabel label) {
  return Run("barrier", 0, label, [&] { return DoBarrier(); });
}

void Communicator::Abort(const absl::Status& reason) {
  WS_CHECK(!reason.ok()) << "an abort needs a reason";
  {
    absl::MutexLock lock(&mutex_);
    if (!error_.ok()) return;
    error_ = reason;
  }
  Interrupt();
}

template <typename Call>
absl::Status Communicator::Run(std::string_view operation, int64_t num_bytes, CollectiveLabel label,
                               Call call) {
  if (absl::Status broken = first_error(); !broken.ok()) return broken;
  const CollectiveRecord record = recorder_.Begin(operation, label.name, label.phase, num_bytes);
  current_sequence_ = record.sequence;
  watchdog_->Arm(absl::Now() + options_.deadline);
  const absl::Status status = call();
  watchdog_->Disarm();
  recorder_.End(current_sequence_, !status.ok());
  if (status.ok()) return status;

  Abort(absl::Status(status.code(), absl::StrCat("rank ", rank_, " of ", size_, ": ",
                                                 DescribeCollective(record), " failed: ", status.message())));
  return first_error();
}

void Communicator::OnDeadline() {
  LogError(absl::StrCat("rank ", rank_, ": a collective passed its deadline of ",
                        absl::FormatDuration(options_.deadline), "; the last ones were:\n",
                        recorder_.Report()));
  const CollectiveRecord last = recorder_.Records().back();
  Abort(absl::DeadlineExceededError(
      absl::StrCat("rank ", rank_, " of ", size_, ": ", DescribeCollective(last), " passed its deadline of ",
                   absl::FormatDuration(options_.deadline), "; look for the rank that did not reach it")));
}

absl::Status Communicator::first_error() const {
  absl::MutexLock lock(&mutex_);
  return error_;
}

}  // namespace warpsmith
