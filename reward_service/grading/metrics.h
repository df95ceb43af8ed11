// What the service counts, for Prometheus.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_METRICS_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_METRICS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "reward_service/grading/grader.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void CountGrade(const std::string& tenant, const v1::Grade& grade);
  // A request that got an error instead of a grade; `tenant` is empty where it is not known.
  void CountError(const std::string& tenant, const absl::Status& status);

  // What came of a request to the LLM judge, or of one that was not made; see LlmObserver.
  void CountLlmJudge(const std::string& result);

  // The text exposition format, version 0.0.4.
  std::string Text(const Backlog& backlog);

 private:
  struct Families;

  const std::unique_ptr<Families> families_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_METRICS_H_
