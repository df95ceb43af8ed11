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

// Words of four bytes. To make a copy that lacks them: invert them in the original, copy it, and invert them again. The
// copy has the inverses until Give(). For the context's thread; nothing here waits but Hold(). Errors are the driver's.
class LateWords {
 public:
  // As the kernels lay it out; both are aligned.
  struct Word {
    Address from = 0;
    Address to = 0;
  };
  static constexpr int64_t kBytes = 4;

  static absl::StatusOr<std::unique_ptr<LateWords>> Create(const GpuContext* context);

  // These words, and no others any more.
  absl::Status Hold(const std::vector<Word>& words);
  // Inverts `count` of them, from `first` on, in the original. A word that is held twice is as it was.
  absl::Status Invert(size_t first, size_t count);
  // Copies all of them, and holds none any more.
  absl::Status Give();
  bool empty() const { return num_words_ == 0; }

 private:
  explicit LateWords(const GpuContext* context) : context_(context) {}
  absl::Status Launch(Function kernel, Address words, size_t count);

  const GpuContext* const context_;
  Function invert_ = nullptr;
  Function give_ = nullptr;
  std::unique_ptr<GpuMemory> list_;
  size_t num_words_ = 0;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_LATE_WORDS_H_
