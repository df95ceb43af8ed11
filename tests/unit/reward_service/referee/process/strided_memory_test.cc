#include "reward_service/referee/process/strided_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Reads a tensor of this very process.
std::vector<float> Read(const float* first, const StridedTensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  std::vector<float> dense(static_cast<size_t>(count), -1);
  const absl::Status status =
      ReadStrided(getpid(), reinterpret_cast<uint64_t>(first), tensor, reinterpret_cast<char*>(dense.data()));
  INFO(status.ToString());
  CHECK(status.ok());
  return dense;
}

TEST_CASE("a strided tensor is read in the order of its indices") {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0f);
  CHECK(Read(memory.data(), {{2, 3}, {3, 1}, 4}) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(Read(memory.data(), {{3, 2}, {1, 3}, 4}) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(Read(memory.data(), {{2, 2, 2}, {12, 1, 5}, 4}) == std::vector<float>{0, 5, 1, 6, 12, 17, 13, 18});
  CHECK(Read(memory.data(), {{1, 3}, {999, 8}, 4}) == std::vector<float>{0, 8, 16});
  CHECK(Read(memory.data() + 7, {{}, {}, 4}) == std::vector<float>{7});
  CHECK(Read(memory.data(), {{2, 2}, {0, 1}, 4}) == std::vector<float>{0, 1, 0, 1});
}

TEST_CASE("memory that no process has is asked for once, from the first element to the last") {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0f);
  std::vector<int64_t> asked;
  const auto read = [&](const StridedTensor& tensor) {
    std::vector<float> dense(6, -1);
    const absl::Status status =
        ReadStrided(tensor, reinterpret_cast<char*>(dense.data()), [&](int64_t num_bytes, char* to) {
          asked.push_back(num_bytes);
          std::memcpy(to, memory.data(), static_cast<size_t>(num_bytes));
          return absl::OkStatus();
        });
    CHECK(status.ok());
    return dense;
  };
  CHECK(read({{2, 3}, {3, 1}, 4}) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(read({{2, 3}, {8, 2}, 4}) == std::vector<float>{0, 2, 4, 8, 10, 12});
  CHECK(read({{3, 2}, {1, 3}, 4}) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(asked == std::vector<int64_t>{24, 52, 24});
  char dense[4];
  CHECK(absl::IsNotFound(
      ReadStrided({{1}, {1}, 4}, dense, [](int64_t, char*) { return absl::NotFoundError("gone"); })));
}

TEST_CASE("what lies between far elements is not touched") {
  // Eight floats over 1 GiB of which nothing else can be read.
  constexpr int64_t kStride = int64_t{1} << 25;
  constexpr size_t kBytes = size_t{1} << 30;
  void* region = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(region != MAP_FAILED);
  auto* first = static_cast<float*>(region);
  std::vector<float> expected;
  for (int64_t i = 0; i < 8; ++i) {
    REQUIRE(mprotect(first + i * kStride, 4096, PROT_READ | PROT_WRITE) == 0);
    first[i * kStride] = static_cast<float>(i);
    expected.push_back(static_cast<float>(i));
  }
  CHECK(Read(first, {{8}, {kStride}, 4}) == expected);
  CHECK(Read(first, {{2, 4}, {kStride * 4, kStride}, 4}) == expected);
  std::vector<char> dense(9 * 4);
  const absl::Status status =
      ReadStrided(getpid(), reinterpret_cast<uint64_t>(first), {{9}, {kStride / 2}, 4}, dense.data());
  CHECK_FALSE(status.ok());
  munmap(region, kBytes);
}

TEST_CASE("more stretches than one call of the kernel takes are read") {
  constexpr int64_t kStride = 2048;
  std::vector<float> memory(3000 * kStride);
  std::vector<float> expected;
  for (int64_t i = 0; i < 3000; ++i) {
    memory[static_cast<size_t>(i * kStride)] = static_cast<float>(i);
    expected.push_back(static_cast<float>(i));
  }
  CHECK(Read(memory.data(), {{3000}, {kStride}, 4}) == expected);
}

TEST_CASE("elements that can lie at one address are found") {
  CHECK_FALSE(SharesElements({{2, 3}, {3, 1}, 4}));
  CHECK_FALSE(SharesElements({{3, 2}, {1, 3}, 4}));
  CHECK_FALSE(SharesElements({{1, 3}, {0, 1}, 4}));
  CHECK_FALSE(SharesElements({{0, 3}, {0, 0}, 4}));
  CHECK(SharesElements({{2, 3}, {0, 1}, 4}));
  CHECK(SharesElements({{2, 3}, {2, 1}, 4}));
}

TEST_CASE("elements span what lies from the first to the end of the last") {
  CHECK(IsWithin({{2, 3}, {3, 1}, 4}, 24));
  CHECK_FALSE(IsWithin({{2, 3}, {3, 1}, 4}, 23));
  CHECK(IsWithin({{3, 2}, {1, 3}, 4}, 24));
  CHECK(IsWithin({{}, {}, 4}, 4));
  CHECK_FALSE(IsWithin({{}, {}, 4}, 3));
  CHECK(IsWithin({{1, 1000}, {0, 0}, 4}, 4));
  CHECK_FALSE(IsWithin({{2}, {-1}, 4}, 24));
  CHECK_FALSE(IsWithin({{2, 3}, {1}, 4}, 24));
  // A span of 2^72 bytes.
  CHECK_FALSE(IsWithin({{int64_t{1} << 35, 2}, {int64_t{1} << 35, 1}, 4}, int64_t{1} << 37));
}

TEST_CASE("dense is what lies one behind the other in row-major order") {
  CHECK(IsDense({{2, 3}, {3, 1}, 4}));
  CHECK(IsDense({{}, {}, 4}));
  CHECK(IsDense({{1, 3}, {7, 1}, 4}));
  CHECK_FALSE(IsDense({{2, 3}, {4, 1}, 4}));
  CHECK_FALSE(IsDense({{2, 3}, {1, 2}, 4}));
  CHECK_FALSE(IsDense({{2, 3}, {1}, 4}));
}

}  // namespace
}  // namespace warpsmith
