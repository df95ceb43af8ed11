// From a candidate to its measurement: verified, timed against the reference, its work attributed.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/lane.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/calibration.h"
#include "reward_service/referee/candidate_jails.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/task/task_pool.h"
#include "reward_service/referee/timer.h"
#include "reward_service/referee/verifier.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// What a judge works with; all outlives it.
struct JudgeTools {
  const Lane* lane = nullptr;
  TaskPool* pool = nullptr;
  Zygote* native_zygote = nullptr;
  Zygote* python_zygote = nullptr;
  EmptyCandidate* empty_native = nullptr;
  EmptyCandidate* empty_python = nullptr;
  RefereeFacts facts;
  int64_t jail_memory_bytes_max = 0;
};

// One judgement. Lives on the thread that holds the lane.
class Judge {
 public:
  Judge(const JudgeTools& tools, const JudgeRequest& request, absl::Time deadline)
      : tools_(tools), request_(request), deadline_(deadline) {}

  // A status is a failure of the machine; whatever candidate or task did is in the measurement. A candidate is
  // first judged where no library can do its work; one that ends there for want of a library is judged once
  // more with all of them.
  absl::StatusOr<v1::Measurement> Run();

 private:
  absl::Status RunAll();
  // What the candidate did wrong; nothing when it is correct.
  absl::StatusOr<std::optional<Fault>> RunIn(Room room);
  absl::StatusOr<std::optional<Fault>> Time(Room room, CandidateJails* jails, bool takes_parameters);
  TimerOptions OptionsOf(Room room, bool takes_parameters) const;
  v1::Timing TimingOf(Room room, const Timer& timer, bool takes_parameters) const;
  v1::Profile ProfileOf(const Timer& timer) const;  // once the timing is in the measurement
  void Convict(const Fault& fault);
  void Conclude(v1::Verdict verdict, std::string_view reason);
  int64_t OutputBytes() const;  // that a program has to write
  double LeastMicroseconds() const;
  v1::Grade& grade() { return *measurement_.mutable_grade(); }
  double LongCallUs() const;
  bool is_native() const { return request_.kind == CandidateKind::kNative; }
  double LaneSeconds() const { return absl::ToDoubleSeconds(absl::Now() - lane_since_); }

  const JudgeTools& tools_;
  const JudgeRequest& request_;
  const absl::Time deadline_;
  v1::Measurement measurement_;
  std::shared_ptr<PooledTask> pooled_;
  PreparedTask* task_ = nullptr;
  UniqueFd source_fd_;
  absl::Time lane_since_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_
