// What is left of a GPU's memory: the part of GpuStore that looks at it.
#include <poll.h>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/tensors/gpu_store.h"

namespace warpsmith {
namespace {

// Memory is scarce where less than such a part of it is left: a program that asks for more than that is rare.
constexpr int64_t kScarceShare = 4;
// A GPU is crowded where others have more than such a part of it.
constexpr int64_t kCrowdedShare = 4;
// In which a driver takes back what killed processes had. Where a task has most of the memory it stays scarce.
constexpr absl::Duration kTakingBackMax = absl::Milliseconds(300);
constexpr int kTakingBackPauseMs = 10;

}  // namespace

absl::StatusOr<int64_t> GpuStore::FreeBytes() const {
  RETURN_IF_ERROR(context_->Enter());
  size_t free_bytes = 0, all_bytes = 0;
  const cuda::Driver& driver = context_->driver();
  RETURN_IF_ERROR(driver.Check(driver.api().cuMemGetInfo_v2(&free_bytes, &all_bytes), "cuMemGetInfo"));
  return static_cast<int64_t>(free_bytes);
}

void GpuStore::NoteScarcity() {
  absl::MutexLock lock(&scarcity_mutex_);
  last_scarce_ = absl::Now();
}

void GpuStore::LookAtMemory() {
  const absl::StatusOr<int64_t> free_bytes = FreeBytes();
  if (!free_bytes.ok() || *free_bytes < device_bytes_ / kScarceShare) NoteScarcity();
}

bool GpuStore::WasScarceSince(absl::Time since) {
  LookAtMemory();
  absl::MutexLock lock(&scarcity_mutex_);
  return last_scarce_ >= since;
}

bool GpuStore::IsCrowded(int64_t own_bytes) const {
  const absl::StatusOr<int64_t> free_bytes = FreeBytes();
  return !free_bytes.ok() || device_bytes_ - *free_bytes - own_bytes > device_bytes_ / kCrowdedShare;
}

bool GpuStore::EndWaiting() {
  if (!end_waiting_ || !end_waiting_()) return false;
  // A driver tells nobody when it has taken back what they had.
  const absl::Time end = absl::Now() + kTakingBackMax;
  while (!HasPlenty() && absl::Now() < end) poll(nullptr, 0, kTakingBackPauseMs);
  return true;
}

bool GpuStore::HasPlenty() {
  const absl::StatusOr<int64_t> free_bytes = FreeBytes();
  return free_bytes.ok() && *free_bytes >= device_bytes_ / kScarceShare;
}

}  // namespace warpsmith
