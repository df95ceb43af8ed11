#include "core/kernels/training/embedding_gradient_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("the gradient of an embedding on the device equals the CPU's to the bit", "",
                   __nv_bfloat16, float) {
  constexpr int64_t kRows = 300, kSize = 1048, kIds = 50;
  std::vector<int64_t> tokens(kRows);
  for (int64_t row = 0; row < kRows; ++row) tokens[row] = row * row % 37;
  const RowsByToken sorted = SortByToken(tokens);
  const std::vector<float> x_grad = RandomStored<TestType>(kRows * kSize, 1);
  std::vector<float> sums = RandomFloats(kIds * kSize, 2);
  const DeviceVector<int32_t> ids(sorted.tokens), indptr(sorted.indptr), rows(sorted.rows);
  const StoredArray<TestType> device_x_grad(x_grad);
  const DeviceArray device_sums(sums);
  const auto num_tokens = static_cast<int64_t>(sorted.tokens.size());
  REQUIRE(LaunchEmbeddingGradient<TestType>({num_tokens, kSize, ids.get(), indptr.get(), rows.get(),
                                             device_x_grad.get(), device_sums.get()},
                                            nullptr) == cudaSuccess);
  EmbeddingGradientReference({num_tokens, kSize, sorted.tokens.data(), sorted.indptr.data(),
                              sorted.rows.data(), x_grad.data(), sums.data()});
  CHECK(device_sums.Read() == sums);
}

}  // namespace
}  // namespace warpsmith
