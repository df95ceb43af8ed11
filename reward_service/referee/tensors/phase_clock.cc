#include "reward_service/referee/tensors/phase_clock.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kToldMin = absl::Milliseconds(5);
constexpr std::array<const char*, kNumPhases> kNames = {
    "other", "turn", "rest",    "start",   "buffers",   "program", "fill",   "cold",
    "call",  "idle", "compare", "prepare", "reference", "path",    "clocks", "end"};

struct Clock {
  Phase phase = Phase::kOther;
  absl::Time since = absl::Now();
  std::array<absl::Duration, kNumPhases> sums;

  // Counts until now, and goes on in `next`.
  void Switch(Phase next) {
    const absl::Time now = absl::Now();
    sums.at(static_cast<size_t>(phase)) += now - since;
    since = now;
    phase = next;
  }
};

Clock& OfThread() {
  thread_local Clock clock;
  return clock;
}

bool HoldsNested(Phase phase) {
  return phase == Phase::kPrepare || phase == Phase::kReference || phase == Phase::kPath ||
         phase == Phase::kClocks;
}

}  // namespace

InPhase::InPhase(Phase phase) : former_(OfThread().phase) {
  OfThread().Switch(HoldsNested(former_) ? former_ : phase);
}

InPhase::~InPhase() { OfThread().Switch(former_); }

std::string TakePhaseReport() {
  Clock& clock = OfThread();
  clock.Switch(clock.phase);
  std::string report;
  for (size_t i = 0; i < kNumPhases; ++i) {
    const absl::Duration sum = clock.sums.at(i);
    clock.sums.at(i) = absl::ZeroDuration();
    if (sum < kToldMin) continue;
    absl::StrAppend(&report, report.empty() ? "" : ", ", kNames.at(i),
                    absl::StrFormat(" %.2f", absl::ToDoubleSeconds(sum)));
  }
  return report;
}

}  // namespace warpsmith
