#include "reward_service/referee/process/context_counts.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace warpsmith {
namespace {

constexpr std::array<const char*, kNumContextsFor> kNames = {"other", "oracle",   "reference", "verified",
                                                             "timed", "recorded", "spare",     "unused"};

}  // namespace

void ContextCounts::Add(ContextFor what) {
  absl::MutexLock lock(&mutex_);
  ++counts_.at(static_cast<size_t>(what));
}

std::string ContextCounts::TakeReport() {
  absl::MutexLock lock(&mutex_);
  std::string report;
  for (size_t i = 0; i < kNumContextsFor; ++i) {
    const int count = std::exchange(counts_.at(i), 0);
    if (count > 0) absl::StrAppend(&report, report.empty() ? "" : ", ", kNames.at(i), " ", count);
  }
  return report;
}

}  // namespace warpsmith
