#include "reward_service/referee/round_clocks.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "reward_service/measure/statistics.h"

namespace warpsmith {
namespace {

using cuda::ClockReading;

constexpr struct {
  uint64_t reason;
  const char* name;
} kReasonNames[] = {{cuda::kReasonApplicationsClocks, "applications clocks"},
                    {cuda::kReasonPowerCap, "power cap"},
                    {cuda::kReasonHardwareSlowdown, "hardware slowdown"},
                    {cuda::kReasonSyncBoost, "sync boost"},
                    {cuda::kReasonThermalSlowdown, "thermal slowdown"},
                    {cuda::kReasonHardwareThermalSlowdown, "hardware thermal slowdown"},
                    {cuda::kReasonPowerBrake, "power brake"},
                    {cuda::kReasonDisplayClock, "display clock"}};

// What comes and goes with the work, or stays as somebody has set it, is none.
uint64_t SlowdownsOf(const ClockReading& reading) {
  return reading.reasons & ~(cuda::kReasonIdle | cuda::kReasonApplicationsClocks);
}

bool Moved(int before_mhz, int after_mhz) {
  return before_mhz != after_mhz && !IsNearOne(static_cast<double>(after_mhz) / before_mhz);
}

// Reasons without a name are told by their bits.
void AddReasons(uint64_t reasons, v1::GpuClocks* clocks) {
  reasons &= ~cuda::kReasonIdle;
  for (const auto& [reason, name] : kReasonNames) {
    if ((reasons & reason) != 0) clocks->add_throttle_reasons(name);
    reasons &= ~reason;
  }
  if (reasons != 0) clocks->add_throttle_reasons(absl::StrCat("reason 0x", absl::Hex(reasons)));
}

v1::GpuClocks Summarise(const std::vector<ClockReading>& readings) {
  const auto [sm_min, sm_max] =
      std::minmax_element(readings.begin(), readings.end(),
                          [](const auto& one, const auto& other) { return one.sm_mhz < other.sm_mhz; });
  const auto [memory_min, memory_max] = std::minmax_element(
      readings.begin(), readings.end(),
      [](const auto& one, const auto& other) { return one.memory_mhz < other.memory_mhz; });
  v1::GpuClocks clocks;
  clocks.set_sm_mhz_min(sm_min->sm_mhz);
  clocks.set_sm_mhz_max(sm_max->sm_mhz);
  clocks.set_memory_mhz_min(memory_min->memory_mhz);
  clocks.set_memory_mhz_max(memory_max->memory_mhz);
  uint64_t reasons = 0;
  for (const ClockReading& reading : readings) reasons |= reading.reasons;
  AddReasons(reasons, &clocks);
  return clocks;
}

}  // namespace

bool ClocksChanged(const RoundClocks& clocks) {
  if (!clocks.before || !clocks.after) return false;
  return Moved(clocks.before->sm_mhz, clocks.after->sm_mhz) ||
         Moved(clocks.before->memory_mhz, clocks.after->memory_mhz) ||
         SlowdownsOf(*clocks.before) != SlowdownsOf(*clocks.after);
}

void DescribeClocks(const std::vector<RoundClocks>& rounds, int num_repeated, const absl::Status& failure,
                    v1::Timing* timing) {
  std::vector<ClockReading> readings;
  for (const RoundClocks& round : rounds) {
    if (round.before) readings.push_back(*round.before);
    if (round.after) readings.push_back(*round.after);
  }
  if (!readings.empty()) {
    *timing->mutable_clocks() = Summarise(readings);
    timing->mutable_clocks()->set_num_repeated_rounds(num_repeated);
  }
  if (const auto num = std::count_if(rounds.begin(), rounds.end(), ClocksChanged); num > 0) {
    absl::StrAppend(timing->mutable_quality(), "; clocks changed during rounds that count: ", num);
  }
  if (!failure.ok()) {
    absl::StrAppend(timing->mutable_quality(), "; clocks are not known: ", std::string(failure.message()));
  }
}

}  // namespace warpsmith
