// The clocks of a GPU at one moment, and why they are no higher.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_CLOCK_READING_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_CLOCK_READING_H_

#include <cstdint>

namespace warpsmith::cuda {

// Bits of ClockReading::reasons: nvmlClocksEventReasons.
inline constexpr uint64_t kReasonIdle = 0x1;
inline constexpr uint64_t kReasonApplicationsClocks = 0x2;  // that somebody has set
inline constexpr uint64_t kReasonPowerCap = 0x4;
inline constexpr uint64_t kReasonHardwareSlowdown = 0x8;
inline constexpr uint64_t kReasonSyncBoost = 0x10;
inline constexpr uint64_t kReasonThermalSlowdown = 0x20;
inline constexpr uint64_t kReasonHardwareThermalSlowdown = 0x40;
inline constexpr uint64_t kReasonPowerBrake = 0x80;
inline constexpr uint64_t kReasonDisplayClock = 0x100;

struct ClockReading {
  int sm_mhz = 0;  // of the multiprocessors
  int memory_mhz = 0;
  uint64_t reasons = 0;  // why neither is higher; 0: they are as high as they can be
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_CLOCK_READING_H_
