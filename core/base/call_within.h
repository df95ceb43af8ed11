// Calls of what may never return.
#ifndef WARPSMITH_CORE_BASE_CALL_WITHIN_H_
#define WARPSMITH_CORE_BASE_CALL_WITHIN_H_

#include <functional>

#include "absl/time/time.h"

namespace warpsmith {

// Makes `call` on a thread of its own and waits for it, at most `patience`. Whether it has returned: one that has not
// keeps the thread and what it captured until it does, so it may refer to nothing that the caller gives back.
bool CallWithin(absl::Duration patience, std::function<void()> call);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_CALL_WITHIN_H_
