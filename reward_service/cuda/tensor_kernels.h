// Kernels of the referee's own: whether tensors on a GPU are what they should be.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_TENSOR_KERNELS_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_TENSOR_KERNELS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "reward_service/cuda/gpu_memory.h"

namespace warpsmith::cuda {

// Of elements: an element c is right for e when |c - e| <= absolute + relative |e - centre| + rounding |e|, in double
// precision; a NaN is never right.
struct Bounds {
  double absolute = 0;
  double relative = 0;
  double rounding = 0;
  double centre = 0;
};

struct Differences {
  int64_t num_wrong = 0;
  double max_absolute_error = 0;  // over finite ones
};

enum class RealType { kHalf, kBrainHalf, kSingle, kDouble };

// Used by the context's thread. Addresses are of memory that is mapped there.
class TensorKernels {
 public:
  static absl::StatusOr<std::unique_ptr<TensorKernels>> Create(const GpuContext* context);

  // Compares so many elements, one behind the other.
  absl::StatusOr<Differences> CompareReals(RealType type, int64_t num_elements, const Bounds& bounds,
                                           Address expected, Address actual);
  // Whether so many bytes are the same.
  absl::StatusOr<bool> AreSame(int64_t num_bytes, Address expected, Address actual);

 private:
  explicit TensorKernels(const GpuContext* context) : context_(context) {}
  absl::StatusOr<Differences> Launch(Function kernel, int64_t num_elements, const Bounds& bounds,
                                     Address expected, Address actual);

  const GpuContext* const context_;
  std::map<RealType, Function> reals_;
  Function words_ = nullptr;
  Function bytes_ = nullptr;
  std::unique_ptr<GpuMemory> result_;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_TENSOR_KERNELS_H_
