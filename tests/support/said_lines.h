// What a process says while it waits, for tests.
#ifndef WARPSMITH_TESTS_SUPPORT_SAID_LINES_H_
#define WARPSMITH_TESTS_SUPPORT_SAID_LINES_H_

#include <algorithm>
#include <cstddef>
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
  // Returns when there are `count` lines that begin like this.
  void Await(size_t count, std::string_view begin = "") {
    absl::MutexLock lock(&mutex_);
    const auto begins = [&](const std::string& line) { return line.compare(0, begin.size(), begin) == 0; };
    const auto enough = [&] {
      return std::count_if(lines_.begin(), lines_.end(), begins) >= static_cast<ptrdiff_t>(count);
    };
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
