#include "reward_service/compiler/header_tier.h"

#include <algorithm>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("tiers go from the facade to the real headers, which alone are left without a facade") {
  const TemporaryDirectory facade;
  const std::vector<HeaderTier> tiers = HeaderTiers({"/torch", "/python", facade.path()});
  REQUIRE(tiers.size() == 3);
  CHECK(tiers[0].name == "facade");
  CHECK(tiers[1].name == "light");
  CHECK(tiers[2].name == "torch");
  const auto& flags = tiers[0].flags;
  CHECK(std::find(flags.begin(), flags.end(), "/torch/include") == flags.end());
  const std::vector<HeaderTier> real = HeaderTiers({"/torch", "/python", ""});
  REQUIRE(real.size() == 1);
  CHECK(real[0].name == "torch");
}

TEST_CASE("what is precompiled changes with the facade's files") {
  const TemporaryDirectory facade;
  std::ofstream(facade.path() / "a.h") << "one";
  const std::string before = HeaderTiers({"/torch", "/python", facade.path()})[0].precompiled;
  CHECK(HeaderTiers({"/torch", "/python", facade.path()})[0].precompiled == before);
  std::ofstream(facade.path() / "a.h") << "two";
  CHECK(HeaderTiers({"/torch", "/python", facade.path()})[0].precompiled != before);
}

}  // namespace
}  // namespace warpsmith
