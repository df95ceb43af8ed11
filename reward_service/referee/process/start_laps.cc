#include "reward_service/referee/process/start_laps.h"

#include "absl/strings/str_format.h"

namespace warpsmith {

void StartLaps::Add(const char* what) {
  const absl::Time now = absl::Now();
  laps_.emplace_back(what, now - last_);
  last_ = now;
}

std::string StartLaps::Report() const {
  std::string report = absl::StrFormat("%.1f s", absl::ToDoubleSeconds(last_ - begin_));
  for (const auto& [what, lap] : laps_) {
    absl::StrAppendFormat(&report, "%s %s %.1f", report.back() == 's' ? ":" : ",", what,
                          absl::ToDoubleSeconds(lap));
  }
  return report;
}

}  // namespace warpsmith
