// Kernels of the referee's own: whether tensors on a GPU are what they should be.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_TENSOR_KERNELS_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_TENSOR_KERNELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/cuda/gpu_memory.h"

namespace warpsmith::cuda {

// How far elements may lie from what is expected, in double precision: see Tolerance in referee/tensors/comparison.h.
struct Bounds {
  double absolute = 0;
  double relative = 0;
  double reach = 1;
};

// Holds expected elements, and a word an element with its margin; 0: there are no margins.
struct Expected {
  Address elements = 0;
  Address margins = 0;
};

// As the kernels lay it out.
struct Differences {
  int64_t num_outliers = 0;
  double max_absolute_error = 0;  // over finite ones
  // Of outliers, of numbers alone: no number or infinite, but for those whose bits are all set; and these.
  int64_t num_non_finite = 0;
  int64_t num_all_bits = 0;
  // How many elements there are from the first outlier to the end; 0 where there is none.
  int64_t num_from_first_outlier = 0;
  double outlier_error = 0;  // the largest; infinite where it is no number
  double squares = 0;        // the sum of min(1, error / margin)^2, over so many elements
  int64_t num_squares = 0;
};

// Where the elements of a tensor lie: extents, the outermost first, and how far apart their elements are, in elements.
struct Places {
  std::array<int64_t, 4> extents = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {};
};

// Those of a tensor, as many strides as extents, with what lies regularly joined. Nothing where that is not enough.
std::optional<Places> JoinedPlaces(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides);

enum class RealType { kHalf, kBrainHalf, kSingle, kDouble };

// For one thread at a time, in the context. Addresses are of memory that is mapped there.
class TensorKernels {
 public:
  static absl::StatusOr<std::unique_ptr<TensorKernels>> Create(const GpuContext* context);

  // Compares so many elements, one behind the other.
  absl::StatusOr<Differences> CompareReals(RealType type, int64_t num_elements, const Bounds& bounds,
                                           const Expected& expected, Address actual);
  // Copies elements of 1, 2, 4 or 8 bytes from their places to `to`, one behind the other in row-major order. Does not
  // wait: what is compared afterwards is what was copied. UNIMPLEMENTED for others.
  absl::Status Gather(int64_t element_bytes, Places places, Address from, Address to);
  // Whether so many bytes are the same.
  absl::StatusOr<bool> AreSame(int64_t num_bytes, Address expected, Address actual);

 private:
  explicit TensorKernels(const GpuContext* context) : context_(context) {}
  absl::StatusOr<Differences> Launch(Function kernel, int64_t num_elements, const Bounds& bounds,
                                     Expected expected, Address actual);

  const GpuContext* const context_;
  std::map<RealType, Function> reals_;
  Function words_ = nullptr;
  Function bytes_ = nullptr;
  std::map<int64_t, Function> gathers_;  // by bytes of an element
  std::unique_ptr<GpuMemory> result_;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_TENSOR_KERNELS_H_
