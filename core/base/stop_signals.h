// How a process that serves is told to end: by SIGTERM or SIGINT, which its main thread waits for.
#ifndef WARPSMITH_CORE_BASE_STOP_SIGNALS_H_
#define WARPSMITH_CORE_BASE_STOP_SIGNALS_H_

#include <signal.h>

namespace warpsmith {

// Blocks SIGTERM and SIGINT in this thread and in all that it starts from now on; returns the set of both.
sigset_t BlockStopSignals();

// Waits for one of them, blocked as above, and returns its number.
int AwaitStopSignal(const sigset_t& signals);

// Has this process's AwaitStopSignal return. Any thread.
void StopThisProcess();

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_STOP_SIGNALS_H_
