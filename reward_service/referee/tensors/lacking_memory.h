// How often in a row a device's memory was wanting, and when that is no task's doing any more.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_LACKING_MEMORY_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_LACKING_MEMORY_H_

#include <atomic>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reward_service/referee/tensors/tensor_store.h"

namespace warpsmith {

// Thread-safe.
class LackingMemory {
 public:
  // `store` outlives it. `num_max`: judgements in a row that may lack memory. `wait_max`: for memory that what was
  // judged last gives back.
  LackingMemory(TensorStore* store, int num_max, absl::Duration wait_max = absl::Seconds(5))
      : store_(store), num_max_(num_max), wait_max_(wait_max) {}

  // After a judgement, which has given back all that it had: whether memory was wanting to `num_max` in a row, and is
  // scarce now that nobody is seen to keep it. A task or candidates that need more than there is leave plenty behind,
  // so they end no referee. May wait.
  bool IsLostAfter(const absl::Status& judged);

 private:
  TensorStore* const store_;
  const int num_max_;
  const absl::Duration wait_max_;
  std::atomic<int> num_in_row_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_LACKING_MEMORY_H_
