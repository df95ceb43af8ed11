// SIGINT and SIGTERM as something to wait for.
#ifndef WARPSMITH_CLI_STOP_SIGNALS_H_
#define WARPSMITH_CLI_STOP_SIGNALS_H_

#include <optional>

#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// Blocks both signals in the thread that makes it and in all that this thread starts later; make it first in
// main.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Becomes readable for poll() when a signal is waiting.
  int fd() const { return fd_.get(); }

  // The next signal, waiting at most `timeout`.
  std::optional<int> Await(absl::Duration timeout);

 private:
  UniqueFd fd_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_STOP_SIGNALS_H_
