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
      const auto call = (*empty)->Measure();
      REQUIRE(call.ok());
      CHECK(call->us > 0);
      CHECK(call->scatter_us >= 0);
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
  CHECK((*empty)->Measure().ok());
  CHECK((*empty)->Measure().status() ==
        absl::InternalError("the empty candidate fails: the program exited with code 7 before its result"));
}

TEST_CASE("an installation without the empty candidate is told which file it lacks") {
  const auto zygote = StartPuppets();
  const TemporaryDirectory share;
  const auto empty = EmptyCandidate::Start(*zygote, CandidateKind::kNative, share.path(), PuppetLane());
  CHECK_THAT(std::string(empty.status().message()), Catch::Contains("libwarpsmith_empty.so"));
}

TEST_CASE("what is measured of a host is finite, and the nearest cache is no slower than memory") {
  const auto zygote = StartPuppets();
  const auto empty = Start(*zygote, CandidateKind::kKernelBenchPython);
  REQUIRE(empty.ok());
  RefereeFacts facts;
  REQUIRE(MeasureHost(PuppetLane(), empty->get(), &facts).ok());
  CHECK(facts.empty_call_us > 0);
  CHECK(facts.gigabytes_per_second_ceiling > 0);
  CHECK(std::isfinite(facts.nearest_cache_gigabytes_per_second));
  CHECK(facts.nearest_cache_gigabytes_per_second >= facts.gigabytes_per_second_ceiling / 2);
}

}  // namespace
}  // namespace warpsmith
