// Grades on disk, so that a request that is asked again after a restart has the same answer.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_GRADE_JOURNAL_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_GRADE_JOURNAL_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/unique_fd.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// An answer as it was given: the request's id within its tenant, what was asked under it, and the grade.
struct GradeRecord {
  std::string identity;
  std::string content_sha256;
  v1::Grade grade;
};

// Two files in one folder: records are appended to the newer one until it holds half of the budget, then it
// takes the place of the older one. A record is its length (4 bytes, little-endian), the first 8 bytes of its
// SHA-256, and three parts, each with its length. What a killed service left unfinished is cut off.
// Thread-safe.
class GradeJournal {
 public:
  // Calls `visit` for every record, the oldest first. RESOURCE_EXHAUSTED where another process has the
  // folder; other errors are those of the disk.
  static absl::StatusOr<std::unique_ptr<GradeJournal>> Open(const std::filesystem::path& folder,
                                                            int64_t bytes_max,
                                                            const std::function<void(GradeRecord)>& visit);

  // Returns when the kernel has it: it outlives this process, not the machine. What a disk does not take is
  // kept and tried again with the next record, up to 16 MiB; one line in the log says so.
  void Append(const GradeRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  GradeJournal(std::filesystem::path folder, int64_t bytes_max)
      : folder_(std::move(folder)), bytes_max_(bytes_max) {}

  absl::Status OpenNewer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteUnwritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(std::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::filesystem::path folder_;
  const int64_t bytes_max_;
  UniqueFd lock_;
  absl::Mutex mutex_;
  UniqueFd newer_ ABSL_GUARDED_BY(mutex_);
  int64_t newer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::string> unwritten_ ABSL_GUARDED_BY(mutex_);
  size_t unwritten_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool outage_logged_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_GRADE_JOURNAL_H_
