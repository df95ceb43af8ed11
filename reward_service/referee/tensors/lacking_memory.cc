#include "reward_service/referee/tensors/lacking_memory.h"

#include <poll.h>

#include "absl/time/clock.h"

namespace warpsmith {
namespace {

constexpr int kPauseMs = 50;

}  // namespace

bool LackingMemory::IsLostAfter(const absl::Status& judged) {
  if (!absl::IsResourceExhausted(judged)) {
    num_in_row_ = 0;
    return false;
  }
  if (++num_in_row_ < num_max_) return false;
  // Tasks are freed, and what killed processes had is taken back, some time behind a judgement.
  const absl::Time end = absl::Now() + wait_max_;
  while (store_->on_gpu() && absl::Now() < end) {
    if (store_->HasPlenty()) {
      num_in_row_ = 0;
      return false;
    }
    poll(nullptr, 0, kPauseMs);
  }
  return true;
}

}  // namespace warpsmith
