// What a process says while it waits, for tests.
#ifndef WARPSMITH_TESTS_SUPPORT_SAID_LINES_H_
#define WARPSMITH_TESTS_SUPPORT_SAID_LINES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "core/base/wait_lines.h"

namespace warpsmith {

class SaidLines {
 public:
  // Options that say their lines here; this must outlive them.
  WaitLineOptions Options(absl::Duration interval) {
    return {.interval = interval, .say = [this](std::string_view line) {
              absl::MutexLock lock(&mutex_);
              lines_.emplace_back(line);
            }};
  }
  // Returns when there are `count` lines.
  void Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return lines_.size() >= count; };
    mutex_.Await(absl::Condition(&enough));
  }
  std::vector<std::string> all() {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SAID_LINES_H_
