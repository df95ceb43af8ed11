#include "core/kernels/embedding_gather.h"

#include <cmath>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a row's token is the host's, or the one of its slot where the host has none") {
  const float embedding[] = {0, 1, 10, 11, 20, 21};
  const int32_t token_ids[] = {2, kTokenInSlot, kTokenInSlot, 0}, token_slots[] = {0, 3, 0, 3};
  const int32_t last_tokens[] = {2, -7, -7, 1};
  float x[8];
  EmbeddingGatherReference({4, 2, 3, embedding, token_ids, token_slots, last_tokens, x});
  const float expected[] = {20, 21, 10, 11, 20, 21, 0, 1};
  for (int i = 0; i < 8; ++i) CHECK(x[i] == expected[i]);
}

TEST_CASE("a token that no embedding has gives a row of NaN") {
  const float embedding[] = {0, 1, 10, 11};
  const int32_t token_ids[] = {2, -2, kTokenInSlot, 1}, token_slots[] = {0, 0, 0, 0};
  const int32_t last_tokens[] = {-1};
  float x[8];
  EmbeddingGatherReference({4, 2, 2, embedding, token_ids, token_slots, last_tokens, x});
  for (int i = 0; i < 6; ++i) CHECK(std::isnan(x[i]));
  CHECK(x[6] == 10);
  CHECK(x[7] == 11);
}

}  // namespace
}  // namespace warpsmith
