// The page by which the referee lets a program on a GPU begin, and the program says that it is done: three words that
// both look at without a call of the kernel's. A process that is continued takes 50 to 200 us until it has read what it
// is to do, and never the same; so it does that first, and the clock starts when it waits. start_page.py has the same.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_START_PAGE_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_START_PAGE_H_

#include <atomic>
#include <cstdint>

#include "reward_service/jail/messages.h"

namespace warpsmith {

// At the page's begin. Runs have numbers from 1 on.
struct StartPage {
  std::atomic<uint32_t> ready;  // the run for which the program waits
  std::atomic<uint32_t> go;     // the last one that has begun
  std::atomic<uint32_t> done;   // the last one that is done: the program's word
  // Of the run that begins, told no sooner; nor are its inputs complete before.
  uint32_t num_calls;
  uint32_t rooms[jail::Run::rooms.num_max];
};

static_assert(std::atomic<uint32_t>::is_always_lock_free);

inline constexpr int64_t kStartPageBytes = 4096;

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_START_PAGE_H_
