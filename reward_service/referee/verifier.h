// Whether a candidate is right: on every input set of its task, in a process of its own for each shape.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_VERIFIER_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_VERIFIER_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/lane.h"
#include "reward_service/referee/candidate_jails.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// What verification says of a candidate beside right or wrong.
struct Verified {
  std::optional<Fault> fault;
  // Whether other parameters than those of its construction can be put into the candidate.
  bool takes_parameters = true;
  // What it printed: the tail, escaped.
  std::string output_tail;
};

// One judgement's verification; for the thread that holds the lane since `lane_since`.
class Verifier {
 public:
  // All outlives it.
  Verifier(CandidateJails* jails, const Lane* lane, const JudgeRequest& request, absl::Time lane_since,
           double long_call_us, v1::Measurement* measurement)
      : jails_(jails),
        lane_(lane),
        request_(request),
        lane_since_(lane_since),
        long_call_us_(long_call_us),
        measurement_(measurement) {}

  // On the task's input sets, and on those of other shapes or strides where it has some. A status is a
  // failure of the machine.
  absl::StatusOr<Verified> Run(PreparedTask& task);

 private:
  absl::Status RunOnInputs(PreparedTask& task, Verified* verified);
  std::optional<Fault> CallOn(CheckedJail& jail, const Draw& draw, bool is_first);
  double LaneSeconds() const;

  CandidateJails* const jails_;
  const Lane* const lane_;
  const JudgeRequest& request_;
  const absl::Time lane_since_;
  const double long_call_us_;
  v1::Measurement* const measurement_;
  bool own_distribution_right_ = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_VERIFIER_H_
