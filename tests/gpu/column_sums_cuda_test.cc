#include "core/kernels/training/column_sums_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("sums of columns on the device equal the CPU's", "", __nv_bfloat16, float) {
  for (const int64_t rows : {0, 1, 33, 1000}) {
    for (const int64_t columns : {2, 66, 1536}) {
      INFO(rows << " x " << columns);
      const std::vector<float> x = RandomStored<TestType>((rows + 1) * columns * 2, 1);
      std::vector<float> sums = RandomFloats(columns, 2);
      const StoredArray<TestType> device_x(x);
      const DeviceArray device_sums(sums);
      REQUIRE(LaunchColumnSums<TestType>({rows, columns, device_x.get(), device_sums.get(), 2 * columns},
                                         nullptr) == cudaSuccess);
      ColumnSumsReference({rows, columns, x.data(), sums.data(), 2 * columns});
      CHECK(Distance(device_sums.Read(), sums) < 1e-6);
    }
  }
}

}  // namespace
}  // namespace warpsmith
