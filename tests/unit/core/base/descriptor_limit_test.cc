#include "core/base/descriptor_limit.h"

#include <sys/resource.h>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the limit is raised to what this process may have") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = 64;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int raised = RaiseDescriptorLimit();
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(limit.rlim_cur == limit.rlim_max);
  CHECK(raised > 64);
}

}  // namespace
}  // namespace warpsmith
