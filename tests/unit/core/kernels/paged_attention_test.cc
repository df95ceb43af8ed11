#include "core/kernels/paged_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// 2 KV heads with 2 query heads each, head_dim 1, pages of 2 tokens: page 2 and then 0 of one sequence of 3 tokens,
// page 3 of one of a single token. What nobody may read is NaN.
struct TwoSequences {
  std::vector<int32_t> row_indptr = {0, 2, 3}, page_indptr = {0, 2, 3}, page_indices = {2, 0, 3};
  std::vector<int32_t> positions = {1, 2, 0};
  std::vector<float> queries = {0, 1, 2, -1, 0, 3, 1, 1, 5, 6, 7, 8};
  //                          page 0            page 1                   page 2         page 3
  std::vector<float> keys = {1, -1, kNan, kNan, kNan, kNan, kNan, kNan, 0, 1, 0.5, 2, 1, 1, kNan, kNan};
  std::vector<float> values = {4, 40, kNan, kNan, kNan, kNan, kNan, kNan, 1, 10, 2, 20, 8, 80, kNan, kNan};
  std::vector<float> output = std::vector<float>(12, kNan);

  std::vector<float> Run() {
    PagedAttentionReference({2, 3, 2, 2, 1, 2, 0.5f, row_indptr.data(), page_indptr.data(),
                             page_indices.data(), positions.data(), queries.data(), keys.data(),
                             values.data(), output.data()});
    return output;
  }
};

float Attended(const std::vector<double>& scores, const std::vector<double>& values) {
  double total = 0, sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    total += std::exp(scores[i]);
    sum += std::exp(scores[i]) * values[i];
  }
  return RoundToBfloat16(static_cast<float>(sum / total));
}

TEST_CASE("rows look at the positions of their sequence up to their own, each head at its KV head") {
  const std::vector<float> output = TwoSequences().Run();
  CHECK(output[0] == 1.5f);                         // equal scores
  CHECK(output[1] == Attended({0, 0.25}, {1, 2}));  // query 1, keys 0 and 0.5, scale 0.5
  CHECK(output[2] == Attended({1, 2}, {10, 20}));   // the second KV head
  CHECK(output[3] == Attended({-0.5, -1}, {10, 20}));
  CHECK(output[4] == RoundToBfloat16(7.0f / 3));
  CHECK(output[5] == Attended({0, 0.75, 1.5}, {1, 2, 4}));
  CHECK(output[6] == Attended({0.5, 1, -0.5}, {10, 20, 40}));
  for (int i = 8; i < 10; ++i) CHECK(output[i] == 8.0f);  // one position has all the weight
  for (int i = 10; i < 12; ++i) CHECK(output[i] == 80.0f);
}

TEST_CASE("large scores do not overflow") {
  TwoSequences sequences;
  sequences.queries.assign(12, 4000);
  const std::vector<float> output = sequences.Run();
  CHECK(output[0] == 2.0f);
  CHECK(output[4] == 4.0f);
  CHECK(output[6] == 20.0f);
}

}  // namespace
}  // namespace warpsmith
