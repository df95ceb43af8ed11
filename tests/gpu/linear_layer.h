// The operands of a linear layer, and cuBLASLt to run it, for tests.
#ifndef WARPSMITH_TESTS_GPU_LINEAR_LAYER_H_
#define WARPSMITH_TESTS_GPU_LINEAR_LAYER_H_

#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/kernels/linear_cuda.h"
#include "tests/gpu/stored_array.h"

namespace warpsmith {

inline constexpr size_t kWorkspaceBytes = 32 << 20;

// cuBLASLt with its workspace.
struct Library {
  Library() { WS_CHECK(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS); }
  ~Library() { cublasLtDestroy(handle); }
  CublasWorkspace workspace() const { return {memory.get(), kWorkspaceBytes}; }

  cublasLtHandle_t handle = nullptr;
  DeviceVector<char> memory{std::vector<char>(kWorkspaceBytes)};
};

// The operands of a shape, the same for every number of rows.
template <typename T>
struct LayerOf {
  LayerOf(const LinearShape& shape, int64_t rows)
      : x(RandomStored<T>(rows * shape.depth, 1)),
        weight(RandomStored<T>(shape.columns * shape.depth, 2)),
        bias(RandomStored<T>(shape.columns, 3)),
        residual(RandomStored<T>(rows * shape.columns, 4)),
        x_device(x),
        weight_device(weight),
        bias_device(bias),
        residual_device(residual),
        y(std::vector<float>(rows * shape.columns)) {}

  LinearOperandsOf<T> operands(const LinearShape& shape) const {
    return {x_device.get(), weight_device.get(), shape.has_bias ? bias_device.get() : nullptr,
            shape.has_residual ? residual_device.get() : nullptr, y.get()};
  }

  std::vector<float> x, weight, bias, residual;
  StoredArray<T> x_device, weight_device, bias_device, residual_device, y;
};
using Layer = LayerOf<__nv_bfloat16>;

inline std::vector<float> FirstRows(const std::vector<float>& all, int64_t elements) {
  return std::vector<float>(all.begin(), all.begin() + elements);
}

// Of a float32 sum of `depth` products below 1: each addition may cut off 2^-24 of a partial sum, which is about
// sqrt(depth); tensor cores do not round to the nearest.
inline double SumError(int64_t depth) {
  return 0x1p-24 * static_cast<double>(depth) * std::sqrt(static_cast<double>(depth)) + 1e-6;
}

// The largest distance from `expected` in units of what one rounding to T and the sum's error allow.
template <typename T = __nv_bfloat16>
double LargestLinearError(const std::vector<float>& found, const std::vector<double>& expected,
                          int64_t depth) {
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double allowed = std::abs(expected[i]) * kHalfStep<T> + SumError(depth);
    const double error = std::abs(found[i] - expected[i]) / allowed;
    largest = error <= largest ? largest : (std::isnan(error) ? INFINITY : error);
  }
  return largest;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_LINEAR_LAYER_H_
