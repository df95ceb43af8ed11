// On a GPU made of the host.
#include "core/model/training/cuda_batch.h"

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a batch's indices name its scored rows, their places, and its rows by token") {
  ScoredBatch batch;
  batch.packed.Append({7, 5, 7});
  batch.packed.Append({5});
  batch.targets = {5, -1, 2, 0};
  CudaBatch on_device;
  DeviceArena arena;
  on_device.Begin(batch, /*sorts=*/true, 8, 8);
  REQUIRE(arena.Arrange([&] { on_device.Place(arena); }).ok());
  REQUIRE(on_device.Upload(nullptr).ok());
  const CudaBatch::Indices& found = on_device.indices();
  const auto read = [](const int32_t* from, int64_t count) {
    return std::vector<int32_t>(from, from + count);
  };
  CHECK(read(found.tokens, 4) == std::vector<int32_t>{7, 5, 7, 5});
  CHECK(read(found.entries, 4) == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(read(found.positions, 4) == std::vector<int32_t>{0, 1, 2, 0});
  CHECK(read(found.cu_seqlens, 3) == std::vector<int32_t>{0, 3, 4});
  CHECK(on_device.scored_rows() == std::vector<int32_t>{0, 2, 3});
  CHECK(read(found.rows, 3) == on_device.scored_rows());
  CHECK(read(found.targets, 3) == std::vector<int32_t>{5, 2, 0});
  CHECK(read(found.places, 4) == std::vector<int32_t>{0, 3, 1, 2});
  CHECK(read(found.sorted_tokens, on_device.num_sorted_tokens()) == std::vector<int32_t>{5, 7});
  CHECK(read(found.sorted_indptr, 3) == std::vector<int32_t>{0, 2, 4});
  CHECK(read(found.sorted_rows, 4) == std::vector<int32_t>{1, 3, 0, 2});
  CHECK(on_device.longest() == 3);
  CHECK(on_device.position_max() == 2);
}

}  // namespace
}  // namespace warpsmith
