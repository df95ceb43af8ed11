#include "reward_service/referee/tensors/phase_clock.h"

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

void Work() { absl::SleepFor(absl::Milliseconds(20)); }

// Without their seconds.
std::string NamesIn(const std::string& report) {
  std::string names;
  for (const char c : report) {
    if (c == ',' || (c >= 'a' && c <= 'z')) names += c;
  }
  return names;
}

TEST_CASE("seconds count for the innermost phase, and for calls of a reference as a whole") {
  (void)TakePhaseReport();
  {
    const InPhase call(Phase::kCall);
    Work();
    const InPhase idle(Phase::kIdle);
    Work();
  }
  {
    const InPhase reference(Phase::kReference);
    const InPhase call(Phase::kCold);
    Work();
  }
  Work();
  CHECK(NamesIn(TakePhaseReport()) == "other,call,idle,reference");
  CHECK(TakePhaseReport().empty());
}

TEST_CASE("each thread has phases of its own") {
  (void)TakePhaseReport();
  std::string report;
  std::thread other([&] {
    const InPhase end(Phase::kEnd);
    Work();
    report = TakePhaseReport();
  });
  other.join();
  CHECK(NamesIn(report) == "end");
}

}  // namespace
}  // namespace warpsmith
