#include "rollout_workers/group_stream.h"

#include <utility>

#include "core/rpc/status.h"

namespace warpsmith {

GroupStream* GroupStream::Start(Worker* worker, const v1::GenerateGroupsRequest& request) {
  std::shared_ptr<GroupStream> stream(new GroupStream(worker));
  stream->self_ = stream;
  stream->Join(request);
  stream->WriteNext();
  return stream.get();
}

void GroupStream::Join(const v1::GenerateGroupsRequest& request) {
  // The worker may wake a reader once more after it has left.
  auto joined = worker_->Join(request, [weak = std::weak_ptr<GroupStream>(self_)] {
    if (const std::shared_ptr<GroupStream> stream = weak.lock()) stream->WriteNext();
  });
  absl::MutexLock lock(&mutex_);
  if (joined.ok()) {
    reader_ = *std::move(joined);
  } else {
    FinishWith(joined.status());
  }
}

// Writes the next group if there is one and no write is under way; ends the call when there will be none.
void GroupStream::WriteNext() {
  absl::MutexLock lock(&mutex_);
  if (finished_ || writing_ != nullptr || !reader_.has_value()) return;
  if (cancelled_) return FinishWith(absl::CancelledError("The caller cancelled"));
  Worker::Next next = worker_->TakeNext(*reader_);
  if (next.response != nullptr) {
    writing_ = std::move(next.response);
    StartWrite(writing_.get());
  } else if (next.end.has_value()) {
    FinishWith(*next.end);
  }
}

void GroupStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = nullptr;
    if (!ok) cancelled_ = true;
  }
  WriteNext();
}

// Decoding stops here, not when a write ends: that may be long after.
void GroupStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  WriteNext();
}

void GroupStream::FinishWith(const absl::Status& status) {
  finished_ = true;
  if (reader_.has_value()) worker_->Leave(*std::exchange(reader_, std::nullopt));
  Finish(ToGrpcStatus(status));
}

void GroupStream::OnDone() {
  // Released outside the lock: this may be the last owner.
  const std::shared_ptr<GroupStream> self = std::move(self_);
}

}  // namespace warpsmith
