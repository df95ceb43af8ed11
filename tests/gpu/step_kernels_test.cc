// The small kernels of a step whose forms in float16 and in float32 are tested alike, each against its reference on the
// CPU. Their forms in bfloat16, and what they refuse, are tested by name.
#include <algorithm>

#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEMPLATE_TEST_CASE("residual and norm equal the CPU's, with deltas and without", "", float, __half) {
  using Array = StoredArray<TestType>;
  for (const int64_t rows : {1, 3, 100}) {
    for (const int64_t size : {1, 31, 256, 1000, 4096, 8200}) {
      for (const int64_t num_deltas : {0, 1, 3}) {
        INFO(rows << " x " << size << ", " << num_deltas << " deltas");
        const std::vector<float> delta = RandomStored<TestType>(num_deltas * rows * size, 2),
                                 weight = RandomStored<TestType>(size, 3);
        std::vector<float> x = RandomStored<TestType>(rows * size, 1), y(rows * size);
        const Array residual(x), added(delta.empty() ? x : delta), weights(weight), found(y);
        const int64_t counted = std::max<int64_t>(num_deltas, 1);
        REQUIRE(LaunchResidualNorm<TestType>(
                    {rows, size, 1e-6f, residual.get(), num_deltas == 0 ? nullptr : added.get(),
                     weights.get(), found.get(), counted},
                    nullptr) == cudaSuccess);
        ResidualNormReference({rows, size, 1e-6f, x.data(), num_deltas == 0 ? nullptr : delta.data(),
                               weight.data(), y.data(), counted},
                              kStoredDtype<TestType>);
        CHECK(residual.Read() == x);
        CHECK(LargestError<TestType>(found.Read(), y) <= 1.0);
      }
    }
  }
}

TEMPLATE_TEST_CASE("SwiGLU equals the CPU's, to where exp overflows and underflows", "", float, __half) {
  for (const int64_t rows : {1, 3, 257}) {
    for (const int64_t size : {16, 48, 1008}) {
      INFO(rows << " x " << size);
      std::vector<float> gate_up = RandomStored<TestType>(rows * 2 * size, 1), y(rows * size);
      for (float& value : gate_up) value *= 128;  // exact in float16, whose largest result is 2^14
      SwiGluReference({rows, size, gate_up.data(), y.data()}, kStoredDtype<TestType>);
      const StoredArray<TestType> input(gate_up), found(y);
      REQUIRE(LaunchSwiGlu<TestType>({rows, size, input.get(), found.get()}, nullptr) == cudaSuccess);
      CHECK(LargestError<TestType>(found.Read(), y) <= 1.0);
    }
  }
}

}  // namespace warpsmith
