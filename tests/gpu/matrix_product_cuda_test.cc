#include "core/kernels/training/matrix_product_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("products with either operand transposed equal the CPU's", "", __nv_bfloat16, float) {
  cublasLtHandle_t handle = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  constexpr size_t kWorkspaceBytes = size_t{32} << 20;
  const DeviceVector<char> workspace((std::vector<char>(kWorkspaceBytes)));
  MatrixProducts<TestType> products(handle, {workspace.get(), kWorkspaceBytes});
  for (const int64_t tokens : {1, 37, 200}) {
    for (const MatrixProduct& product : {LinearForward(tokens, 48, 96), LinearInputGradient(tokens, 48, 96),
                                         LinearWeightGradient(tokens, 48, 96)}) {
      INFO(tokens << " tokens to " << product.rows << " x " << product.columns);
      const std::vector<float> a = RandomStored<TestType>(product.rows * product.depth, 1),
                               b = RandomStored<TestType>(product.depth * product.columns, 2);
      std::vector<float> c = RandomStored<TestType>(product.rows * product.columns, 3);
      std::vector<double> expected(c.begin(), c.end());
      MatrixProductReference(product, a.data(), b.data(), expected.data());
      const StoredArray<TestType> device_a(a), device_b(b), stored_c(c);
      const DeviceArray float_c(c);
      void* const device_c =
          product.in_float32 ? static_cast<void*>(float_c.get()) : static_cast<void*>(stored_c.get());
      for (int run = 0; run < (product.adds ? 1 : 2); ++run) {  // the second by the known algorithm
        REQUIRE(products.Launch(product, device_a.get(), device_b.get(), device_c, nullptr) ==
                CUBLAS_STATUS_SUCCESS);
      }
      const std::vector<float> found = product.in_float32 ? float_c.Read() : stored_c.Read();
      const double allowed = product.in_float32 ? 1e-6 : kRounding<TestType>;
      CHECK(Distance(found, std::vector<float>(expected.begin(), expected.end())) < allowed);
    }
  }
  CHECK(cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace warpsmith
