// The account of what was graded: a log line, metrics, and the latest grades to look at.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_LEDGER_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_LEDGER_H_

#include <cstdint>
#include <memory>

#include "reward_service/grading/metrics.h"
#include "reward_service/grading/prepared_request.h"
#include "reward_service/grading/recent_grades.h"

namespace warpsmith {

// Thread-safe.
class Ledger {
 public:
  // Recent grades are bounded by `recent_bytes_max`.
  explicit Ledger(int64_t recent_bytes_max) : recent_(recent_bytes_max) {}

  // Of a grade when it is first given; `prepared` has a tenant.
  void Record(const std::shared_ptr<const PreparedRequest>& prepared, const v1::Grade& grade);

  Metrics& metrics() { return metrics_; }
  const RecentGrades& recent() const { return recent_; }

 private:
  Metrics metrics_;
  RecentGrades recent_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_LEDGER_H_
