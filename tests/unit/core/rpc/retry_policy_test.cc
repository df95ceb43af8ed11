#include "core/rpc/retry_policy.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Time that passes only by waiting.
class FakeClock : public RetryClock {
 public:
  absl::Time Now() override { return now_; }
  bool Wait(absl::Duration delay) override {
    waits_.push_back(delay);
    now_ += delay;
    return waits_.size() < stop_at_wait_;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::vector<absl::Duration> waits_;
  size_t stop_at_wait_ = 1000;
};

RetryOptions WithoutJitter() {
  RetryOptions options;
  options.jitter = 0;
  return options;
}

}  // namespace

TEST_CASE("the delay grows to its limit") {
  RetryOptions options = WithoutJitter();
  options.num_attempts_max = 100;
  options.elapsed_max = absl::InfiniteDuration();
  const RetryPolicy policy(options);
  const absl::Status status = absl::UnavailableError("down");
  CHECK(policy.NextDelay({.num_failed = 1}, status, {}) == absl::Milliseconds(100));
  CHECK(policy.NextDelay({.num_failed = 2}, status, {}) == absl::Milliseconds(200));
  CHECK(policy.NextDelay({.num_failed = 5}, status, {}) == absl::Milliseconds(1600));
  CHECK(policy.NextDelay({.num_failed = 8}, status, {}) == absl::Seconds(10));
  CHECK(policy.NextDelay({.num_failed = 99}, status, {}) == absl::Seconds(10));
}

TEST_CASE("attempts are bounded") {
  RetryOptions options;
  options.num_attempts_max = 3;
  const RetryPolicy policy(options);
  CHECK(policy.NextDelay({.num_failed = 2}, absl::UnavailableError(""), {}).has_value());
  CHECK_FALSE(policy.NextDelay({.num_failed = 3}, absl::UnavailableError(""), {}).has_value());
}

TEST_CASE("no wait ends after the time there is") {
  RetryOptions options = WithoutJitter();
  options.elapsed_max = absl::Seconds(1);
  const RetryPolicy policy(options);
  CHECK(policy.NextDelay({.num_failed = 1}, absl::UnavailableError(""), absl::Milliseconds(900)).has_value());
  CHECK_FALSE(
      policy.NextDelay({.num_failed = 1}, absl::UnavailableError(""), absl::Milliseconds(901)).has_value());
}

TEST_CASE("only what may pass by itself is tried again") {
  const RetryPolicy policy{RetryOptions()};
  CHECK(policy.NextDelay({.num_failed = 1}, absl::UnavailableError(""), {}).has_value());
  CHECK(policy.NextDelay({.num_refused = 1}, BackPressureError("", absl::Milliseconds(1)), {}).has_value());
  CHECK_FALSE(policy.NextDelay({.num_failed = 1}, absl::OkStatus(), {}).has_value());
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kInternal, absl::StatusCode::kCancelled,
        absl::StatusCode::kUnimplemented}) {
    CHECK_FALSE(policy.NextDelay({.num_failed = 1}, absl::Status(code, "x"), {}).has_value());
  }
}

TEST_CASE("the server's delay is the least to wait") {
  RetryOptions options;
  options.elapsed_max = absl::Minutes(10);
  const RetryPolicy policy(options);
  for (int attempt = 1; attempt < 8; ++attempt) {
    const auto delay =
        policy.NextDelay({.num_refused = attempt}, BackPressureError("", absl::Seconds(30)), {});
    REQUIRE(delay.has_value());
    CHECK(*delay >= absl::Seconds(30));
    CHECK(*delay <= absl::Seconds(36));
  }
}

TEST_CASE("a server that is full is waited for at no attempt, as long as it asks, until the time is over") {
  RetryOptions options = WithoutJitter();
  options.num_attempts_max = 2;
  const RetryPolicy policy(options);
  const absl::Status full = BackPressureError("full", absl::Seconds(3));
  RetryCounts counts;
  for (int i = 0; i < 100; ++i) {
    counts.Add(full);
    CHECK(policy.NextDelay(counts, full, absl::Seconds(10)) == absl::Seconds(3));
  }
  CHECK_FALSE(policy.NextDelay(counts, full, absl::Seconds(118)).has_value());
  const absl::Status down = absl::UnavailableError("down");
  counts.Add(down);
  CHECK(policy.NextDelay(counts, down, {}) == absl::Milliseconds(100));
  counts.Add(down);
  CHECK_FALSE(policy.NextDelay(counts, down, {}).has_value());
}

TEST_CASE("a server that is full and asks for no delay is not hammered") {
  const absl::Status full = BackPressureError("full", absl::ZeroDuration());
  CHECK(RetryPolicy(WithoutJitter()).NextDelay({.num_refused = 9}, full, {}) == absl::Milliseconds(100));
}

TEST_CASE("an UNAVAILABLE that names a delay is a failed attempt") {
  absl::Status stopping = absl::UnavailableError("stopping");
  SetRetryDelay(&stopping, absl::Milliseconds(1));
  RetryCounts counts;
  counts.Add(stopping);
  counts.Add(absl::ResourceExhaustedError("message too large"));
  CHECK(counts.num_failed == 2);
  CHECK(counts.num_refused == 0);
}

TEST_CASE("jitter stays in its bounds, repeats by seed and differs between seeds") {
  RetryOptions options;
  int different = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    options.seed = seed;
    const auto delay = RetryPolicy(options).NextDelay({.num_failed = 1}, absl::UnavailableError(""), {});
    CHECK(delay >= absl::Milliseconds(80));
    CHECK(delay <= absl::Milliseconds(120));
    CHECK(delay == RetryPolicy(options).NextDelay({.num_failed = 1}, absl::UnavailableError(""), {}));
    options.seed = seed + 1;
    if (delay != RetryPolicy(options).NextDelay({.num_failed = 1}, absl::UnavailableError(""), {}))
      ++different;
  }
  CHECK(different > 90);
}

TEST_CASE("a call is repeated until it succeeds") {
  FakeClock clock;
  int calls = 0;
  const auto call = [&] { return ++calls < 3 ? absl::UnavailableError("down") : absl::OkStatus(); };
  CHECK(CallWithRetries(RetryPolicy(WithoutJitter()), clock, call).ok());
  CHECK(calls == 3);
  CHECK(clock.waits_ == std::vector<absl::Duration>{absl::Milliseconds(100), absl::Milliseconds(200)});
}

TEST_CASE("the last status comes back when the policy gives up") {
  FakeClock clock;
  int calls = 0;
  const auto call = [&] { return absl::UnavailableError(absl::StrCat("attempt ", ++calls)); };
  const absl::Status status = CallWithRetries(RetryPolicy(RetryOptions()), clock, call);
  CHECK(status.message() == "attempt 8");
  CHECK(calls == 8);
}

TEST_CASE("a call that finds the server full is repeated beyond the attempts") {
  FakeClock clock;
  int calls = 0;
  const auto call = [&] {
    return ++calls < 30 ? BackPressureError("full", absl::Seconds(2)) : absl::OkStatus();
  };
  CHECK(CallWithRetries(RetryPolicy(RetryOptions()), clock, call).ok());
  CHECK(calls == 30);
}

TEST_CASE("a final error is not repeated") {
  FakeClock clock;
  int calls = 0;
  const auto call = [&] {
    ++calls;
    return absl::InvalidArgumentError("wrong");
  };
  CHECK(absl::IsInvalidArgument(CallWithRetries(RetryPolicy(RetryOptions()), clock, call)));
  CHECK(calls == 1);
}

TEST_CASE("a caller that stops while waiting gets CANCELLED with the reason of the wait") {
  FakeClock clock;
  clock.stop_at_wait_ = 1;
  const absl::Status status =
      CallWithRetries(RetryPolicy(RetryOptions()), clock, [] { return absl::UnavailableError("down"); });
  CHECK(absl::IsCancelled(status));
  CHECK(status.message().find("down") != absl::string_view::npos);
}

TEST_CASE("the system clock stops waiting at once when told to") {
  absl::Notification stop;
  stop.Notify();
  CHECK_FALSE(SystemRetryClock(&stop).Wait(absl::Hours(1)));
}

}  // namespace warpsmith
