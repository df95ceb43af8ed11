#include "core/distributed/flight_recorder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/check.h"

namespace warpsmith {
namespace {

std::string StateOf(const CollectiveRecord& record) {
  if (record.end == absl::InfiniteFuture()) {
    return absl::StrFormat("running for %.3f s", absl::ToDoubleSeconds(absl::Now() - record.start));
  }
  const double seconds = absl::ToDoubleSeconds(record.end - record.start);
  return absl::StrFormat("%s after %.3f s", record.failed ? "failed" : "done", seconds);
}

}  // namespace

FlightRecorder::FlightRecorder(size_t capacity) : capacity_(capacity) {
  WS_CHECK(capacity > 0);
  ring_.reserve(capacity);
}

CollectiveRecord FlightRecorder::Begin(std::string_view operation, std::string_view name,
                                       std::string_view phase, int64_t num_bytes) {
  absl::MutexLock lock(&mutex_);
  CollectiveRecord record{.sequence = next_sequence_,
                          .operation = std::string(operation),
                          .name = std::string(name),
                          .phase = std::string(phase),
                          .num_bytes = num_bytes,
                          .start = absl::Now()};
  const size_t slot = static_cast<size_t>(next_sequence_++) % capacity_;
  if (slot < ring_.size()) {
    ring_[slot] = record;
  } else {
    ring_.push_back(record);
  }
  return record;
}

void FlightRecorder::End(int64_t sequence, bool failed) {
  absl::MutexLock lock(&mutex_);
  CollectiveRecord& record = ring_[static_cast<size_t>(sequence) % capacity_];
  if (record.sequence != sequence) return;  // overwritten by `capacity` later ones
  record.end = absl::Now();
  record.failed = failed;
}

std::vector<CollectiveRecord> FlightRecorder::Records() const {
  absl::MutexLock lock(&mutex_);
  std::vector<CollectiveRecord> records = ring_;
  std::sort(records.begin(), records.end(),
            [](const CollectiveRecord& a, const CollectiveRecord& b) { return a.sequence < b.sequence; });
  return records;
}

std::string FlightRecorder::Report() const {
  std::string report;
  for (const CollectiveRecord& record : Records()) {
    absl::StrAppend(&report, DescribeCollective(record), ": ", StateOf(record), "\n");
  }
  return report;
}

std::string DescribeCollective(const CollectiveRecord& record) {
  return absl::StrCat(record.operation, " \"", record.name, "\" (#", record.sequence, ", phase ",
                      record.phase, ", ", record.num_bytes, " bytes)");
}

}  // namespace warpsmith
