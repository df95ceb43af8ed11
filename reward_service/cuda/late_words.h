// Words that a copy lacks until its maker gives them.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_LATE_WORDS_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_LATE_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/cuda/gpu_memory.h"

namespace warpsmith::cuda {

// Words that are exchanged by pairs. To make a copy that lacks them: exchange them in the original, copy it, and
// exchange them again. The copy has each in the other's place until Give(), and no value that the original has not. For
// one thread at a time, in the context; nothing here waits but Hold(). Errors are the driver's.
class LateWords {
 public:
  // As wide as the widest element: half of an integer of 64 bits would be known in another's place.
  static constexpr int64_t kBytes = 8;
  // Of sixteen calls with 64 inputs each.
  static constexpr size_t kPairsMax = 65536;
  // Both words in the original and in the copy, aligned; as the kernel lays it out.
  struct Pair {
    Address first = 0;
    Address second = 0;
    Address copy_of_first = 0;
    Address copy_of_second = 0;
  };

  static absl::StatusOr<std::unique_ptr<LateWords>> Create(const GpuContext* context);

  // These pairs, kPairsMax at most, and no others any more.
  absl::Status Hold(const std::vector<Pair>& pairs);
  // Exchanges the words of `count` pairs, from pair `first` on, in the original. None may be in two of them.
  absl::Status Exchange(size_t first, size_t count);
  // Copies all words to where they belong, and holds none any more.
  absl::Status Give();
  bool empty() const { return num_pairs_ == 0; }

 private:
  explicit LateWords(const GpuContext* context) : context_(context) {}
  absl::Status Place(size_t first, size_t count, bool in_copy);

  const GpuContext* const context_;
  Function place_ = nullptr;
  std::unique_ptr<GpuMemory> list_;  // of all that there may be: a program could leave no memory for more
  size_t num_pairs_ = 0;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_LATE_WORDS_H_
