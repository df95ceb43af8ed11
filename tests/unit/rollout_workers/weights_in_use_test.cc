#include "rollout_workers/weights_in_use.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

EngineStatus Using(uint64_t version, const std::string& sha256) {
  EngineStatus status;
  status.loaded = true;
  status.policy_version = version;
  status.weights_sha256 = sha256;
  return status;
}

}  // namespace

TEST_CASE("weights are in use by version and SHA-256, and not where nobody knows it") {
  CHECK(AreInUse({.policy_version = 3, .sha256 = "a"}, Using(3, "a")));
  CHECK_FALSE(AreInUse({.policy_version = 4, .sha256 = "a"}, Using(3, "a")));
  CHECK_FALSE(AreInUse({.policy_version = 3, .sha256 = "b"}, Using(3, "a")));
  CHECK_FALSE(AreInUse({.policy_version = 3}, Using(3, "")));
  EngineStatus without = Using(3, "a");
  without.loaded = false;
  CHECK_FALSE(AreInUse({.policy_version = 3, .sha256 = "a"}, without));
}

TEST_CASE("an engine takes weights unless it sleeps, or would mix two under one version") {
  const LoadedWeights weights{.policy_version = 3, .sha256 = "b"};
  CHECK(CheckCanTake(weights, Using(3, "a"), false).ok());
  CHECK(CheckCanTake(weights, Using(2, "a"), true).ok());
  const absl::Status mixed = CheckCanTake(weights, Using(3, "a"), true);
  CHECK(absl::IsFailedPrecondition(mixed));
  CHECK_THAT(std::string(mixed.message()), Catch::Contains("another version"));
  EngineStatus asleep = Using(2, "a");
  asleep.asleep = true;
  const absl::Status status = CheckCanTake(weights, asleep, false);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("wake it first"));
}

}  // namespace warpsmith
