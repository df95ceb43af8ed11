#include "core/kernels/page_copy_cuda.h"

#include <string>

#include "tests/gpu/device_rate.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kNumPages = 9, kPageTokens = 5;

TEST_CASE("copied pages are those of the reference, and nothing else changes") {
  const std::vector<PageToCopy> copies = {{0, 3, 5}, {0, 8, 2}, {7, 1, 1}, {2, 4, 0}};
  for (const int64_t entry_size : {8, 24, 1024, 4096}) {  // the last takes two passes of a block
    for (const int64_t planes : {1, 6}) {
      INFO(entry_size << " elements an entry, " << planes << " planes");
      const int64_t stride = kNumPages * kPageTokens * entry_size + 16;
      const std::vector<float> before = RandomBfloat16s(planes * stride, 1);
      std::vector<float> expected = before;
      PageCopyReference(
          {std::ssize(copies), copies.data(), planes, stride, kPageTokens, entry_size, expected.data()});
      const Bfloat16Array pages(before);
      const DeviceVector<PageToCopy> list(copies);
      REQUIRE(LaunchPageCopies(
                  {std::ssize(copies), list.get(), planes, stride, kPageTokens, entry_size, pages.get()},
                  nullptr) == cudaSuccess);
      CHECK(pages.Read() == expected);
    }
  }
}

TEST_CASE("page copies refuse entries that are not whole vectors, and take none") {
  CHECK(LaunchPageCopies({1, nullptr, 1, 8, 1, 12, nullptr}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchPageCopies({0, nullptr, 1, 8, 1, 8, nullptr}, nullptr) == cudaSuccess);
}

TEST_CASE("the rates of copying 1 to 128 pages of 16 tokens of 1,024 elements in 72 planes") {
  constexpr int64_t kPagesMax = 128, kTokens = 16, kEntry = 1024, kPlanes = 72,
                    kStride = 2 * kPagesMax * kTokens * kEntry;
  std::vector<PageToCopy> copies;
  for (int32_t i = 0; i < kPagesMax; ++i) copies.push_back({i, i + static_cast<int32_t>(kPagesMax), kTokens});
  const DeviceVector<PageToCopy> list(copies);
  const DeviceVector<uint16_t> pages(std::vector<uint16_t>(kPlanes * kStride));
  for (const int64_t count : {1, 2, 4, 8, 16, 64, 128}) {
    PrintRate((std::to_string(count) + " page copies").c_str(),
              2 * count * kTokens * kEntry * kPlanes * sizeof(uint16_t), [&] {
                return LaunchPageCopies({count, list.get(), kPlanes, kStride, kTokens, kEntry,
                                         reinterpret_cast<__nv_bfloat16*>(pages.get())},
                                        nullptr);
              });
  }
}

}  // namespace
}  // namespace warpsmith
