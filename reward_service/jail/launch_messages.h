// Messages between referee and jail, beside those of messages.h, on what a call launches on a GPU.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_LAUNCH_MESSAGES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_LAUNCH_MESSAGES_H_

#include <cstdint>

#include "reward_service/jail/fields.h"
#include "reward_service/jail/messages.h"

namespace warpsmith {

namespace jail {

// A kernel that a call launched with this grid and block, by its own account: all such launches together.
struct LaunchedKernel {
  static constexpr TextField name{"name", 128};
  static constexpr ListField grid{"grid", 3};
  static constexpr ListField block{"block", 3};
  static constexpr IntegerField registers{"registers", 0, 65535, 0};
  static constexpr IntegerField shared_bytes{"shared_bytes", 0, 1 << 30, 0};
  static constexpr IntegerField num_launches{"num_launches", 1, INT32_MAX, 1};
  static constexpr NumberField us{"us", 0, 1 << 30, 0};
};

// After timing: one more call, of which nothing is timed or compared, to see what it launches on a GPU.
struct Profile : ToJail {
  static constexpr char op[] = "profile";
  static constexpr IntegerField slot{"slot", 0, 1, 0};
  static constexpr IntegerField room{"room", 0, 16, 0};
};

struct Profiled : ToReferee {
  static constexpr char op[] = "profiled";
  static constexpr ListField kernels{"kernels", 32};
  static constexpr IntegerField num_launches{"num_launches", 0, INT32_MAX, 0};
};

}  // namespace jail

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_LAUNCH_MESSAGES_H_
