// The driver's own pool of memory, whose numbers its manual does not explain.
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "reward_service/cuda/gpu_memory.h"
#include "tests/support/catch.h"

namespace warpsmith::cuda {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

TEST_CASE(
    "memory that is freed on a GPU is there for the next at once, and its device has it once it is "
    "returned") {
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto pool = MemoryPool::Open(context->get());
  REQUIRE(pool.ok());
  const auto free_bytes = [&] {
    size_t free = 0, all = 0;
    CHECK((*context)->driver().api().cuMemGetInfo_v2(&free, &all) == 0);
    return static_cast<int64_t>(free);
  };
  (*pool)->ReturnUnused(0);
  const int64_t free_before = free_bytes(), unused_before = (*pool)->unused_bytes();
  std::vector<std::unique_ptr<GpuMemory>> draws;
  for (int i = 0; i < 16; ++i) {  // of a size that divides none of the driver's units
    auto draw = GpuMemory::Allocate(context->get(), 33 * kMib + 4);
    REQUIRE(draw.ok());
    REQUIRE((*draw)->Fill(1, 0, (*draw)->num_bytes()).ok());
    draws.push_back(*std::move(draw));
  }
  const int64_t unused_beside = (*pool)->unused_bytes();
  for (size_t i = 0; i < draws.size(); i += 2) draws[i].reset();
  const int64_t unused_between = (*pool)->unused_bytes();
  CHECK(unused_between - unused_beside >= 8 * 33 * kMib);  // though the fills may still run
  const int64_t free_between = free_bytes();
  {
    const auto other = GpuMemory::Allocate(context->get(), 20 * kMib);
    REQUIRE(other.ok());
    CHECK(free_bytes() == free_between);
    // What the other draws have is as it was.
    std::array<char, 4> last{};
    REQUIRE(draws[1]->Read(last.data(), 33 * kMib, 4).ok());
    CHECK(last == std::array<char, 4>{1, 1, 1, 1});
  }
  (*pool)->ReturnUnused(0);  // as far as it lies apart from the others
  const int64_t stuck = (*pool)->unused_bytes();
  std::printf(
      "16 draws of 33 MiB: %lld MiB unused beside them, %lld once half are freed, %lld of it not returned\n",
      static_cast<long long>(unused_beside / kMib), static_cast<long long>(unused_between / kMib),
      static_cast<long long>(stuck / kMib));
  CHECK(free_bytes() >= free_between);
  draws.clear();
  CHECK((*pool)->ReturnUnused(0));
  CHECK((*pool)->unused_bytes() <= unused_before);
  CHECK(free_before - free_bytes() < 64 * kMib);
}

}  // namespace
}  // namespace warpsmith::cuda
