#include "reward_service/grading/waiting/backlog_time.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

double SecondsFor(const BacklogTime& backlog, int num_requests, absl::Time now) {
  return absl::ToDoubleSeconds(backlog.Estimate(num_requests, now));
}

// `count` requests, each of which took a lane `work`.
void Judge(BacklogTime* backlog, int count, absl::Duration work, absl::Time now) {
  for (int i = 0; i < count; ++i) {
    backlog->CountJudging(work, now);
    backlog->CountAnswered(1, now);
  }
}

TEST_CASE("before anything is known a request counts as half a second of a lane") {
  CHECK(SecondsFor(BacklogTime(1, 1), 10, kStart) == Approx(5.0));
  CHECK(SecondsFor(BacklogTime(1, 2), 10, kStart) == Approx(2.5));
}

TEST_CASE("the estimate is the backlog times the mean work, divided by the lanes") {
  BacklogTime one(1, 1), four(1, 4);
  Judge(&one, 1000, absl::Seconds(2), kStart);
  Judge(&four, 1000, absl::Seconds(2), kStart);
  CHECK(SecondsFor(one, 5, kStart) == Approx(10.0).epsilon(0.01));
  CHECK(SecondsFor(four, 5, kStart) == Approx(2.5).epsilon(0.01));
}

TEST_CASE("the estimate is neither a hammering nor an eternity") {
  BacklogTime fast(1, 1), slow(1, 1);
  Judge(&fast, 1000, absl::Milliseconds(1), kStart);
  Judge(&slow, 1000, absl::Seconds(10), kStart);
  CHECK(fast.Estimate(1, kStart) == BacklogTime::kMin);
  CHECK(fast.Estimate(0, kStart) == BacklogTime::kMin);
  CHECK(slow.Estimate(256, kStart) == BacklogTime::kMax);
}

TEST_CASE("requests that share a measurement share its work") {
  BacklogTime backlog(1, 1);
  for (int i = 0; i < 100; ++i) backlog.CountJudging(absl::Seconds(4), kStart);
  backlog.CountAnswered(800, kStart);
  CHECK(SecondsFor(backlog, 8, kStart) == Approx(4.0).epsilon(0.01));
}

TEST_CASE("where compiling takes longer than judging it is what decides") {
  BacklogTime backlog(2, 1);
  Judge(&backlog, 100, absl::Milliseconds(100), kStart);
  for (int i = 0; i < 100; ++i) backlog.CountCompiling(absl::Seconds(6), kStart);
  CHECK(SecondsFor(backlog, 4, kStart) == Approx(12.0).epsilon(0.02));
}

TEST_CASE("the estimate follows a change of the load, and forgets in idle hours") {
  BacklogTime backlog(1, 1);
  Judge(&backlog, 100, absl::Seconds(1), kStart);
  const absl::Time later = kStart + 4 * BacklogTime::kHalfLife;
  Judge(&backlog, 100, absl::Seconds(5), later);
  CHECK(SecondsFor(backlog, 4, later) == Approx(4 * (500 + 100 / 16.0) / (100 + 100 / 16.0)).epsilon(0.02));
  CHECK(SecondsFor(backlog, 4, later + absl::Hours(10)) == Approx(2.0));
}

TEST_CASE("a clock that is set back changes nothing") {
  BacklogTime backlog(1, 1);
  Judge(&backlog, 100, absl::Seconds(2), kStart);
  Judge(&backlog, 100, absl::Seconds(2), kStart - absl::Hours(1));
  CHECK(SecondsFor(backlog, 5, kStart - absl::Hours(2)) == Approx(10.0).epsilon(0.01));
}

}  // namespace
}  // namespace warpsmith
