#include "reward_service/cuda/host_pages.h"

#include <algorithm>

#include "tests/support/catch.h"

namespace warpsmith::cuda {
namespace {

TEST_CASE("pages of the host are zeros, and more than there can be are refused") {
  const auto pages = HostPages::Map(5000);
  REQUIRE(pages.ok());
  CHECK(pages->num_bytes() == 5000);
  CHECK(std::all_of(pages->data(), pages->data() + 5000, [](char c) { return c == 0; }));
  CHECK(HostPages::Map(0)->num_bytes() == 1);
  CHECK(absl::IsResourceExhausted(HostPages::Map(int64_t{1} << 60).status()));
}

}  // namespace
}  // namespace warpsmith::cuda
