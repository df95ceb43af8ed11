// The zygote's side of making a jail: a grandchild, so that the referee, which asked to inherit orphans,
// becomes its parent and may wait for its stops; in namespaces of its own.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_FORK_JAIL_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_FORK_JAIL_H_

#include "absl/status/statusor.h"

namespace warpsmith {

enum class ForkSide { kParent, kJail };

// Returns in the parent when the jail is the referee's child, and in the jail at that moment too.
// Single-threaded callers only.
absl::StatusOr<ForkSide> ForkJail();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_FORK_JAIL_H_
