// A device's turn in a test, which does not wait for ever.
#ifndef WARPSMITH_TESTS_SUPPORT_HELD_TURN_H_
#define WARPSMITH_TESTS_SUPPORT_HELD_TURN_H_

#include <memory>

#include "core/base/check.h"
#include "reward_service/referee/tensors/device_turn.h"

namespace warpsmith {

inline std::unique_ptr<DeviceTurn::Held> HoldTurn(DeviceTurn* turn, DeviceTurn::Kind kind) {
  auto held = DeviceTurn::Take(turn, kind, absl::Now() + absl::Seconds(120));
  WS_CHECK(held.ok()) << held.status().ToString();
  return *std::move(held);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HELD_TURN_H_
