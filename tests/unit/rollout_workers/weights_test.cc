#include "rollout_workers/weights.h"

#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"

namespace warpsmith {

TEST_CASE("weights of one seed have one SHA-256, and those of another have another") {
  CHECK(RandomWeights(Tiny(), 5).sha256 == RandomWeights(Tiny(), 5).sha256);
  CHECK(RandomWeights(Tiny(), 5).sha256 != RandomWeights(Tiny(), 6).sha256);
}

TEST_CASE("an offer is told from another by its checksums, or where there are none by its SHA-256s") {
  OfferedWeights offered;
  offered.buffers = {{.name = "a", .sha256 = "1"}, {.name = "b", .sha256 = "2"}};
  const std::string by_sha256 = CombinedSha256(offered);
  offered.buffers[1].sha256 = "3";
  CHECK(CombinedSha256(offered) != by_sha256);
  offered.buffers[0].checksum = offered.buffers[1].checksum = "4";
  const std::string by_checksum = CombinedSha256(offered);
  offered.buffers[1].sha256 = "5";  // is not looked at
  CHECK(CombinedSha256(offered) == by_checksum);
  offered.buffers[1].checksum = "6";
  CHECK(CombinedSha256(offered) != by_checksum);
}

}  // namespace warpsmith
