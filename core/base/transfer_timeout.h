// How long weights may take to travel, so that no bound ends what is slow and sound.
#ifndef WARPSMITH_CORE_BASE_TRANSFER_TIMEOUT_H_
#define WARPSMITH_CORE_BASE_TRANSFER_TIMEOUT_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace warpsmith {

// The largest model of today in bfloat16, and more is a mistake.
inline constexpr int64_t kTransferBytesMax = int64_t{2} << 40;

// 2 minutes, and what `bytes` take at 50 MB/s, less than a folder over a slow network gives. Numbers below 0 and over
// kTransferBytesMax count as these.
inline absl::Duration TransferTimeout(int64_t bytes) {
  constexpr int64_t kSlowestBytesPerSecond = 50'000'000;
  return absl::Minutes(2) +
         absl::Seconds(std::clamp(bytes, int64_t{0}, kTransferBytesMax) / kSlowestBytesPerSecond);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_TRANSFER_TIMEOUT_H_
