#include "core/base/wait_lines.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/absl_view.h"

namespace warpsmith {

std::string SecondsText(absl::Duration duration) {
  const bool is_short = duration < absl::Seconds(1);
  return absl::FormatDuration(absl::Trunc(duration, is_short ? absl::Milliseconds(1) : absl::Seconds(1)));
}

std::string WaitLine(std::string_view what, absl::Duration waited, absl::Duration timeout) {
  const std::string line = absl::StrCat("waiting for ", AbslView(what), ", for ", SecondsText(waited));
  return timeout == absl::InfiniteDuration() ? line
                                             : absl::StrCat(line, " of at most ", SecondsText(timeout));
}

WaitLines::WaitLines(std::string what, absl::Duration timeout, WaitLineOptions options)
    : what_(std::move(what)), timeout_(timeout), options_(std::move(options)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "ws-wait");
}

WaitLines::~WaitLines() {
  {
    absl::MutexLock lock(&mutex_);
    is_over_ = true;
  }
  thread_.join();
}

void WaitLines::Run() {
  const absl::Time began = absl::Now();
  absl::MutexLock lock(&mutex_);
  for (;;) {
    if (mutex_.AwaitWithTimeout(absl::Condition(&is_over_), options_.interval)) return;
    options_.say(WaitLine(what_, absl::Now() - began, timeout_));
  }
}

}  // namespace warpsmith
