#include "core/kernels/page_copy.h"

#include <numeric>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a copy moves the first tokens of a page in every plane, and nothing else") {
  // 2 planes of 3 pages of 2 tokens of 2 elements, and 1 element between the planes.
  constexpr int64_t kStride = 13;
  std::vector<float> pages(2 * kStride);
  std::iota(pages.begin(), pages.end(), 0.0f);
  std::vector<float> expected = pages;
  for (int64_t plane = 0; plane < 2; ++plane) {
    float* const p = expected.data() + plane * kStride;
    p[8] = p[0], p[9] = p[1], p[10] = p[2], p[11] = p[3];  // page 2 from page 0, whole
    p[4] = p[0], p[5] = p[1];                              // page 1, its first token
  }
  const PageToCopy copies[] = {{0, 2, 2}, {0, 1, 1}};
  PageCopyReference({2, copies, 2, kStride, 2, 2, pages.data()});
  CHECK(pages == expected);
}

TEST_CASE("offsets of pages do not wrap where a cache has more than 2^31 elements") {
  PageCopies<float> copies;
  copies.plane_stride = int64_t{1} << 33;
  copies.page_tokens = 16;
  copies.entry_size = 1024;
  CHECK(PageOffset(copies, 3, 400000) == (int64_t{3} << 33) + int64_t{400000} * 16384);
}

}  // namespace
}  // namespace warpsmith
