#include "core/kernels/random_normals_cuda.h"

#include <cmath>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("random values are normal, never zero, and a function of their seed") {
  constexpr int kSize = 100003;
  const Bfloat16Array values(std::vector<float>(kSize, 0.0f));
  const auto drawn = [&](uint64_t seed) {
    REQUIRE(LaunchRandomNormals(values.get(), kSize, seed, 0.5f, nullptr) == cudaSuccess);
    return values.Read();
  };
  const std::vector<float> first = drawn(1);
  double sum = 0, squares = 0;
  int num_zeros = 0;
  for (const float value : first) {
    sum += value;
    squares += double{value} * value;
    num_zeros += value == 0;
  }
  CHECK(num_zeros == 0);
  // Six deviations of the mean, and of the mean square, of so many.
  CHECK(std::abs(sum / kSize) < 6 * 0.5 / std::sqrt(kSize));
  CHECK(std::abs(squares / kSize - 0.25) < 6 * 0.25 * std::sqrt(2.0 / kSize));
  CHECK(drawn(1) == first);
  CHECK(drawn(2) != first);
}

}  // namespace warpsmith
