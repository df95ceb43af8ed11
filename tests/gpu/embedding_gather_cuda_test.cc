#include "core/kernels/embedding_gather_cuda.h"

#include <cmath>

#include "tests/gpu/device_rate.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kNumTokens = 100;

TEST_CASE("gathered rows are those of the reference, from the host's tokens and from slots") {
  const std::vector<int32_t> last_tokens = {7, 99, -1, 100};
  for (const int64_t rows : {1, 5, 300}) {
    for (const int64_t size : {8, 136, 4096}) {
      INFO(rows << " x " << size);
      const std::vector<float> embedding = RandomBfloat16s(kNumTokens * size, 1);
      std::vector<int32_t> token_ids(rows), token_slots(rows);
      for (int64_t row = 0; row < rows; ++row) {
        token_ids[row] = row % 3 == 1 ? kTokenInSlot : static_cast<int32_t>(row * 31 % (kNumTokens + 1));
        token_slots[row] = static_cast<int32_t>(row / 3 % 4);
      }
      std::vector<float> expected(rows * size);
      EmbeddingGatherReference({rows, size, kNumTokens, embedding.data(), token_ids.data(),
                                token_slots.data(), last_tokens.data(), expected.data()});

      const Bfloat16Array table(embedding), x(std::vector<float>(rows * size));
      const DeviceVector<int32_t> ids(token_ids), slots(token_slots), last(last_tokens);
      REQUIRE(LaunchEmbeddingGather(
                  {rows, size, kNumTokens, table.get(), ids.get(), slots.get(), last.get(), x.get()},
                  nullptr) == cudaSuccess);
      const std::vector<float> found = x.Read();
      int64_t different = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        different += std::isnan(expected[i]) ? !std::isnan(found[i]) : found[i] != expected[i];
      }
      CHECK(different == 0);  // nothing is computed
    }
  }
}

TEST_CASE("a gather refuses rows that are not whole vectors, and takes none") {
  CHECK(LaunchEmbeddingGather({1, 12}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchEmbeddingGather({0, 8}, nullptr) == cudaSuccess);
}

TEST_CASE("the rate of a gather of 4,096 rows of 4,096 columns") {
  constexpr int64_t kRows = 4096, kSize = 4096;
  const Bfloat16Array table(RandomBfloat16s(kNumTokens * kSize, 1)), x(std::vector<float>(kRows * kSize));
  const DeviceVector<int32_t> ids(std::vector<int32_t>(kRows, 5)), none({0});
  PrintRate("embedding gather", 2 * kRows * kSize * sizeof(uint16_t), [&] {
    return LaunchEmbeddingGather(
        {kRows, kSize, kNumTokens, table.get(), ids.get(), none.get(), none.get(), x.get()}, nullptr);
  });
}

}  // namespace
}  // namespace warpsmith
