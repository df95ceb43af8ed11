#include "core/base/wait_lines.h"

#include <string>

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"

namespace warpsmith {

TEST_CASE("a line says for what is waited, how long already and until when") {
  CHECK(WaitLine("rank 0", absl::Milliseconds(20'400), absl::Minutes(10)) ==
        "waiting for rank 0, for 20s of at most 10m");
  CHECK(WaitLine("rank 0", absl::Milliseconds(250), absl::InfiniteDuration()) ==
        "waiting for rank 0, for 250ms");
}

TEST_CASE("a wait that lasts is said again and again, and no more once it is over") {
  SaidLines lines;
  {
    const WaitLines waiting("the store", absl::Minutes(1), lines.Options(absl::Milliseconds(5)));
    lines.Await(3);
  }
  const size_t num_lines = lines.all().size();
  absl::SleepFor(absl::Milliseconds(30));
  CHECK(lines.all().size() == num_lines);
  for (const std::string& line : lines.all()) {
    CHECK_THAT(line, Catch::StartsWith("waiting for the store, for ") && Catch::EndsWith("s of at most 1m"));
  }
}

TEST_CASE("a wait that is short is not said") {
  SaidLines lines;
  { const WaitLines waiting("the store", absl::Minutes(1), lines.Options(absl::Hours(1))); }
  CHECK(lines.all().empty());
}

}  // namespace warpsmith
