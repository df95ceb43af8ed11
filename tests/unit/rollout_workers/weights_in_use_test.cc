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
  CHECK(CheckCanTake(weights, Using(3, "a"), {}, false).ok());
  CHECK(CheckCanTake(weights, Using(2, "a"), {}, true).ok());
  const absl::Status mixed = CheckCanTake(weights, Using(3, "a"), {}, true);
  CHECK(absl::IsFailedPrecondition(mixed));
  CHECK_THAT(std::string(mixed.message()), Catch::Contains("another version"));
  EngineStatus asleep = Using(2, "a");
  asleep.asleep = true;
  const absl::Status status = CheckCanTake(weights, asleep, {}, false);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("wake it first"));
}

TEST_CASE("weights of one version are told apart as long as samples under way may have tokens of both") {
  const LoadedWeights first{.policy_version = 3, .sha256 = "a"}, second{.policy_version = 4, .sha256 = "b"},
      other{.policy_version = 3, .sha256 = "c"}, unknown{.policy_version = 3};
  WeightsUnderWay under_way;
  under_way.Took(first, false);
  under_way.Took(second, true);
  CHECK(under_way.HasOthersOf(other));
  CHECK(under_way.HasOthersOf(unknown));
  CHECK_FALSE(under_way.HasOthersOf(first));
  CHECK_FALSE(under_way.HasOthersOf({.policy_version = 5, .sha256 = "a"}));

  EngineStatus holding = Using(4, "b");
  holding.loaded = false;  // it gave its weights back, or could not take new ones
  CHECK(CheckCanTake(other, holding, under_way, true).ok());
  holding.num_active_samples = 1;
  CHECK(absl::IsFailedPrecondition(CheckCanTake(other, holding, under_way, true)));
  CHECK(absl::IsFailedPrecondition(
      CheckCanTake({.policy_version = 4, .sha256 = "d"}, holding, under_way, true)));
  CHECK(CheckCanTake(first, holding, under_way, true).ok());
  CHECK(CheckCanTake(other, holding, under_way, false).ok());

  under_way.Took(other, false);  // nothing was under way
  CHECK_FALSE(under_way.HasOthersOf(other));
  CHECK_FALSE(under_way.HasOthersOf(second));
  under_way.Took(first, true);  // two of one version, as kRequireNone never takes them
  CHECK(under_way.HasOthersOf(first));
}

}  // namespace warpsmith
