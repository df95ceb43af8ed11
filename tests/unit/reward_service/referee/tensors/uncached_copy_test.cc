#include "reward_service/referee/tensors/uncached_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("every length and alignment is copied and filled to the byte, and nothing beside it") {
  std::vector<char> from(256);
  std::iota(from.begin(), from.end(), '\0');
  for (size_t offset = 0; offset < 17; ++offset) {
    for (const size_t n :
         {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{64}, size_t{131}}) {
      std::vector<char> copied(256, 'x');
      std::vector<char> filled(256, 'x');
      CopyUncached(copied.data() + offset, from.data() + 3, n);
      FillUncached(filled.data() + offset, 0xFB, n);
      std::vector<char> expected(256, 'x');
      std::memcpy(expected.data() + offset, from.data() + 3, n);
      CHECK(copied == expected);
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(offset), n, '\xFB');
      CHECK(filled == expected);
    }
  }
}

}  // namespace
}  // namespace warpsmith
