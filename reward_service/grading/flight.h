// A measurement on its way, and the requests that wait for it.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_FLIGHT_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_FLIGHT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "reward_service/grading/prepared_request.h"
#include "reward_service/llm_judge/llm_judge.h"
#include "reward_service/measure/judge_request.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// Called exactly once for a request, without any lock held, from any thread.
using GradeDone = std::function<void(absl::StatusOr<v1::Grade>)>;

// One request that waits for a measurement.
struct Waiter {
  uint64_t ticket = 0;
  std::shared_ptr<const PreparedRequest> prepared;
  GradeDone done;
  absl::Time arrived;
};

// Requests with the same measurement key, or opinion key where an LLM judge is asked, share one flight.
// `waiters` belongs to the grader's lock; everything else to the one stage that holds the flight, but for
// `cancelled`, which anybody may read.
struct Flight {
  std::shared_ptr<const PreparedRequest> prepared;  // of the first waiter
  std::vector<Waiter> waiters;
  // The highest of its waiters': a v1::Priority, unspecified counting as normal.
  std::atomic<int> priority{0};
  // Nobody waits any more: stages drop the flight as soon as they see it.
  std::atomic<bool> cancelled{false};
  absl::Time queued_since;                                           // in the queue that it waits in, ...
  uint64_t queue_number = 0;                                         // ... and in which order it came there
  v1::Measurement measurement;                                       // filled in from stage to stage
  std::shared_ptr<const LlmOpinion> opinion;                         // null: not asked for
  std::shared_ptr<const UniqueFd> library;                           // native candidates, once compiled
  bool extensions_recorded = false;                                  // Python candidates
  std::vector<ExtensionRecord> extensions;                           // what they want built, and ...
  std::vector<std::shared_ptr<const UniqueFd>> extension_libraries;  // ... what was built
  // A lane was lost under it, and another judges it: once, for it may be the cause.
  bool passed_on = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_FLIGHT_H_
