// Jails for one candidate: each of its processes is started here, sealed or open.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/referee/checked_jail.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/task/prepared_task.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// A jail whose program is loaded, or the fault with which that ended.
struct StartedJail {
  std::unique_ptr<CheckedJail> jail;
  std::optional<Fault> fault;
};

struct CandidateJailOptions {
  Zygote* zygote = nullptr;  // of the candidate's kind
  const Lane* lane = nullptr;
  int64_t memory_bytes_max = 0;
  Room room = Room::kSealed;
  bool tells_launches = false;  // of CpuTools
  absl::Time deadline;
};

// For the thread that holds the lane. What it is given outlives it.
class CandidateJails {
 public:
  CandidateJails(const CandidateJailOptions& options, const JudgeRequest& request, int source_fd,
                 v1::Measurement* measurement)
      : options_(options), request_(request), source_fd_(source_fd), measurement_(measurement) {}

  // A fresh process with the candidate in it, to be timed beside `baseline`, or, without one, verified. The task
  // outlives it.
  absl::StatusOr<StartedJail> Start(PreparedTask& task, const Jail* baseline, int num_threads);
  Room room() const { return options_.room; }
  bool tells_launches() const { return options_.tells_launches; }

 private:
  Program MakeProgram(const PreparedTask& task, int num_threads) const;

  const CandidateJailOptions options_;
  const JudgeRequest& request_;
  const int source_fd_;  // of a Python candidate
  v1::Measurement* const measurement_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_H_
