// The latest grades with what was graded, for people who look at rewards.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_RECENT_GRADES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_RECENT_GRADES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/grading/prepared_request.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

struct RecentGrade {
  int64_t sequence = 0;  // counts grades from 1
  absl::Time time;
  std::shared_ptr<const PreparedRequest> prepared;
  v1::Grade grade;
};

// Which grades to list; every condition that is given must hold.
struct RecentGradeFilter {
  std::string tenant;  // whose: required
  std::optional<v1::Verdict> verdict;
  std::optional<double> reward_min;
  std::optional<double> reward_max;
  std::optional<std::string> hack_family;
  int64_t before = INT64_MAX;  // of a smaller sequence
  size_t num_max = 50;
};

// Thread-safe. Keeps the latest, bounded in number and bytes.
class RecentGrades {
 public:
  explicit RecentGrades(int64_t bytes_max, size_t num_max = 2000)
      : bytes_max_(bytes_max), num_max_(num_max) {}

  void Add(std::shared_ptr<const PreparedRequest> prepared, const v1::Grade& grade);

  // The latest first.
  std::vector<std::shared_ptr<const RecentGrade>> List(const RecentGradeFilter& filter) const;

  // Null when it is forgotten, or another tenant's.
  std::shared_ptr<const RecentGrade> Find(const std::string& tenant, int64_t sequence) const;

  // How often each verdict was given to a tenant since the start.
  std::map<v1::Verdict, int64_t> VerdictCounts(const std::string& tenant) const;

 private:
  const int64_t bytes_max_;
  const size_t num_max_;
  mutable absl::Mutex mutex_;
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<const RecentGrade>> grades_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<v1::Verdict, int64_t>> counts_ ABSL_GUARDED_BY(mutex_);  // by tenant
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_RECENT_GRADES_H_
