#include "core/model/packed_batch.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("sequences are laid end to end, positions counting from 0 in each") {
  PackedBatch batch;
  CHECK(batch.num_sequences() == 0);
  batch.Append({5, 6, 7});
  batch.Append({8});
  CHECK(batch.num_tokens() == 4);
  CHECK(batch.num_sequences() == 2);
  CHECK(batch.tokens == std::vector<int64_t>{5, 6, 7, 8});
  CHECK(batch.positions == std::vector<int64_t>{0, 1, 2, 0});
  CHECK(batch.cu_seqlens == std::vector<int64_t>{0, 3, 4});
}

}  // namespace
}  // namespace warpsmith
