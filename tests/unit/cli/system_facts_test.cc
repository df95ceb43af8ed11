#include "cli/system_facts.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("The facts of this machine, which built the test, are found") {
  const SystemFacts facts = GatherSystemFacts();
  CHECK_FALSE(facts.distribution.empty());
  CHECK(facts.num_cores >= 1);
  CHECK(facts.memory_available_gb > 0);
  CHECK(facts.disk_free_gb > 0);
  CHECK_THAT(facts.compiler_version, Catch::Contains("."));
  CHECK_THAT(facts.torch_version, Catch::StartsWith("2.11"));
}

}  // namespace
}  // namespace warpsmith
