#include "reward_service/referee/process/late_zygote.h"

#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<Zygote*> LateZygote::Get() {
  absl::MutexLock lock(&mutex_);
  if (zygote_ == nullptr) {
    ASSIGN_OR_RETURN(zygote_, start_());
  }
  return zygote_.get();
}

Zygote* LateZygote::started() {
  absl::MutexLock lock(&mutex_);
  return zygote_.get();
}

}  // namespace warpsmith
