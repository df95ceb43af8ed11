#include "trainer/run_folder/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr int kBarWidth = 24;
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(200);
constexpr absl::Duration kLogInterval = absl::Seconds(5);

std::string FormatSeconds(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration + absl::Milliseconds(500));
  return seconds < 60 ? absl::StrCat(seconds, "s") : absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
}

}  // namespace

std::string FormatProgress(const std::string& phase, double fraction, absl::Duration elapsed,
                           const std::string& detail, bool with_bar) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  std::string line = absl::StrFormat("%-11s ", phase);
  if (with_bar) {
    const int filled = static_cast<int>(fraction * kBarWidth);
    absl::StrAppend(&line, "[", std::string(filled, '#'), std::string(kBarWidth - filled, '-'), "] ");
  }
  absl::StrAppend(&line, absl::StrFormat("%3.0f%% ", 100 * fraction), FormatSeconds(elapsed));
  if (fraction > 0 && fraction < 1) {
    absl::StrAppend(&line, ", ", FormatSeconds(elapsed * ((1 - fraction) / fraction)), " left");
  }
  return detail.empty() ? line : absl::StrCat(line, "  ", detail);
}

std::string GroupsText(int num_arrived, int num_wanted) {
  return absl::StrCat(num_arrived, " of ", num_wanted, " groups");
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (open_) std::fputc('\n', stderr);
}

void ProgressLine::Start(std::string phase) {
  if (open_) std::fputc('\n', stderr);
  open_ = false;
  phase_ = std::move(phase);
  start_ = absl::Now();
  last_drawn_ = absl::InfinitePast();
}

void ProgressLine::Update(double fraction, const std::string& detail) {
  if (absl::Now() - last_drawn_ >= (terminal_ ? kRedrawInterval : kLogInterval)) Draw(fraction, detail);
}

void ProgressLine::Keep(double fraction, const std::string& detail) {
  Draw(fraction, detail);
  if (open_) std::fputc('\n', stderr);
  open_ = false;
}

void ProgressLine::Finish(const std::string& detail) { Keep(1.0, detail); }

void ProgressLine::Draw(double fraction, const std::string& detail) {
  last_drawn_ = absl::Now();
  const std::string line = FormatProgress(phase_, fraction, last_drawn_ - start_, detail, terminal_);
  if (!terminal_) return LogInfo(line);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  open_ = true;
}

}  // namespace warpsmith
