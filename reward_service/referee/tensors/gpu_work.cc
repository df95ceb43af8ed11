// Whose work a GPU does, and when: the part of GpuStore that keeps it busy, waits for it and measures it.
#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/tensors/gpu_store.h"

namespace warpsmith {
namespace {

constexpr int64_t kCopiedBytes = int64_t{1} << 30;
constexpr int kCopies = 5;

}  // namespace

void GpuStore::Occupy() {
  if (turn_.is_shared()) return;
  Do([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return occupation_.Begin(); });  // Do() has the lock
}

absl::StatusOr<double> GpuStore::AwaitOccupied() {
  if (turn_.is_shared()) return 0.0;
  double longer_us = 0;
  absl::Status status;
  Do([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {  // Do() has the lock
    const absl::StatusOr<double> longer = occupation_.Await();
    longer_us = longer.value_or(0);
    status = longer.status();
    return status;
  });
  RETURN_IF_ERROR(status);
  return longer_us;
}

absl::StatusOr<double> GpuStore::GiveLateWords() {
  absl::MutexLock lock(&mutex_);
  if (late_words_->empty()) return 0.0;
  const absl::Time begin = absl::Now();
  absl::Status status = context_->Enter();
  if (status.ok()) status = late_words_->Give();
  if (status.ok()) status = context_->Synchronise();
  failure_.Update(status);
  RETURN_IF_ERROR(status);
  return std::max(0.0, absl::ToDoubleMicroseconds(absl::Now() - begin) - probe_->idle_us());
}

absl::StatusOr<double> GpuStore::AwaitDone(double seconds_max) {
  if (turn_.is_shared()) return 0.0;  // what others ask for meanwhile would be waited for, too
  absl::MutexLock lock(&mutex_);
  absl::Status status = context_->Enter();
  if (status.ok()) status = context_->Synchronise();  // this process's own work is nobody else's
  const absl::Time begin = absl::Now();
  if (status.ok()) status = probe_->AwaitIdle(seconds_max);
  if (absl::IsDeadlineExceeded(status)) return status;
  failure_.Update(status);
  RETURN_IF_ERROR(status);
  return std::max(0.0, absl::ToDoubleMicroseconds(absl::Now() - begin) - probe_->idle_us());
}

void GpuStore::Settle() {
  // Without the lock: what others ask for meanwhile need not wait for it.
  absl::Status status = context_->Enter();
  if (status.ok()) status = context_->Synchronise();
  absl::MutexLock lock(&mutex_);
  failure_.Update(status);
}

void GpuStore::MakeCold() {
  if (turn_.is_shared()) return;
  Do([this] {
    context_->ResetPersistingCache();
    return cache_filler_->Fill(0, 0, cache_filler_->num_bytes());
  });
}

absl::Status GpuStore::Health() {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(context_->Enter());
  // Beside others that it computes is all that can be seen.
  failure_ = turn_.is_shared() ? probe_->Run().status() : probe_->AwaitIdle(kRecoverySeconds);
  return failure_;
}

absl::StatusOr<double> GpuStore::MeasureCopying() {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  ASSIGN_OR_RETURN(const auto from, cuda::GpuMemory::Create(context_.get(), kCopiedBytes));
  ASSIGN_OR_RETURN(const auto to, cuda::GpuMemory::Create(context_.get(), kCopiedBytes));
  RETURN_IF_ERROR(from->Fill(1, 0, kCopiedBytes));
  RETURN_IF_ERROR(context_->Synchronise());
  double best_us = 0;
  for (int i = 0; i < kCopies; ++i) {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(to->Copy(*from));
    RETURN_IF_ERROR(context_->Synchronise());
    const double us = absl::ToDoubleMicroseconds(absl::Now() - begin);
    best_us = i == 0 ? us : std::min(best_us, us);
  }
  return 2.0 * static_cast<double>(kCopiedBytes) / (best_us * 1e3);
}

}  // namespace warpsmith
