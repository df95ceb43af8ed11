#include "reward_service/referee/calibration.h"

#include <cmath>
#include <string>

#include "reward_service/measure/referee.h"
#include "tests/support/catch.h"
#include "tests/support/puppet_zygote.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

absl::StatusOr<std::unique_ptr<EmptyCandidate>> Start(Zygote& zygote,
                                                      CandidateKind kind = CandidateKind::kNative) {
  return EmptyCandidate::Start(zygote, kind, ShareDirectory(), PuppetLane());
}

TEST_CASE("what a call costs that does nothing is measured for both kinds, as often as asked") {
  const auto zygote = StartPuppets();
  for (const CandidateKind kind : {CandidateKind::kNative, CandidateKind::kKernelBenchPython}) {
    const auto empty = Start(*zygote, kind);
    REQUIRE(empty.ok());
    for (int i = 0; i < 3; ++i) {
      const auto us = (*empty)->Microseconds();
      REQUIRE(us.ok());
      CHECK(*us > 0);
    }
  }
}

TEST_CASE("an empty candidate that fails is a failure of the machine, told with what it said") {
  const nlohmann::json refuses = {{"answers", {{"begin", {{"op", "failed"}, {"error", "no memory"}}}}}};
  CHECK(Start(*StartPuppets(refuses)).status() ==
        absl::InternalError("the empty candidate does not start: no memory"));
  // Twelve calls are one measurement.
  nlohmann::json calls = nlohmann::json::array();
  while (calls.size() < 12) calls.push_back(nullptr);
  calls.push_back("end");
  const auto zygote = StartPuppets({{"answers", {{"run", calls}}}});
  const auto empty = Start(*zygote);
  REQUIRE(empty.ok());
  CHECK((*empty)->Microseconds().ok());
  CHECK((*empty)->Microseconds().status() ==
        absl::InternalError("the empty candidate fails: the program exited with code 7 before its result"));
}

TEST_CASE("an installation without the empty candidate is told which file it lacks") {
  const auto zygote = StartPuppets();
  const TemporaryDirectory share;
  const auto empty = EmptyCandidate::Start(*zygote, CandidateKind::kNative, share.path(), PuppetLane());
  CHECK_THAT(std::string(empty.status().message()), Catch::Contains("libwarpsmith_empty.so"));
}

TEST_CASE("a sampled call is one call, and none where sampling is forbidden") {
  const auto zygote = StartPuppets();
  const auto empty = Start(*zygote);
  REQUIRE(empty.ok());
  ProfileSampler sampler;
  CHECK((*empty)->SampleCall(sampler).ok());
  // Whoever counts per call does not count the one that warms up.
  const ProfileSampler::SamplesPerCall samples = sampler.PerCall();
  for (const double count : samples) CHECK(count >= 0);
  CHECK((*empty)->Microseconds().ok());
}

TEST_CASE("copying in memory has a finite speed") {
  const double gigabytes_per_second = MeasureMemoryCeiling();
  CHECK(gigabytes_per_second > 0);
  CHECK(std::isfinite(gigabytes_per_second));
}

}  // namespace
}  // namespace warpsmith
