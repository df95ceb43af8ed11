// Times a candidate beside its reference, and has its work sampled.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TIMER_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TIMER_H_

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/referee/path_costs.h"
#include "reward_service/referee/timed_side.h"
#include "reward_service/referee/timing_plan.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

struct TimerOptions {
  TimingEffort effort;
  double lane_seconds_max = 10;
  // Input sets that are timed, in this order, those of the warm-up first and at least two more; and those of
  // other distributions.
  std::vector<const Draw*> input_sets;
  std::vector<const Draw*> unusual_sets;
  size_t num_warm_ups = 1;
  // Whether the candidate's earlier call is repeated before a timed one, as the reference's is: where its
  // path is as long.
  bool repeats = false;
  // Some calls beside those that count are sampled, for advice alone.
  bool can_sample = true;
  // No call that wrote its outputs takes less [us].
  double least_us = 0;
  // Outputs that the candidate allocates, which it could clear before a call that counts, and the time that this
  // takes [us].
  int64_t own_output_bytes = 0;
  double clear_us = 0;
  // Calls beyond it are long [us].
  double long_call_us = std::numeric_limits<double>::infinity();
  double sample_period_us = 0;
  // No side is warmed by a repeated call where its path is measured cold.
  PathOptions path;
  // The candidate is the reference in another form: its process is believed like the reference's, and charged nothing.
  bool trusts_candidate = false;
  // Calls that one release may let a program make, each on an input set that it has not seen: as many as it takes
  // until the path to a program is below a tenth of their time.
  size_t batch_calls_max = 1;
};

// One judgement's timing. INVALID_ARGUMENT: the reference fails when it is timed, the task is at fault.
class Timer {
 public:
  // `device` outlives it.
  Timer(TimingDevice* device, TimerOptions options);

  // Nothing when all went well; otherwise what the candidate did wrong.
  absl::StatusOr<std::optional<Fault>> Run();

  // After a Run() without a fault: times, speed-up and overhead.
  v1::Timing Timing() const;
  // Whose work was seen, without bandwidth and bound.
  v1::Profile Profile() const;
  // After a Run() without a fault, once: what a call of the candidate launches, by the word of the last process that
  // was timed, which ends here. As TimedSide::Launches(); UNIMPLEMENTED also when the lane's time is up.
  absl::StatusOr<v1::Profile> Launches();
  // Of that, the seconds that calls took which were made to be sampled alone.
  double sampling_seconds() const { return sampling_seconds_; }
  // Whether a call of the candidate's was timed, with or without a fault of a later one.
  bool has_timed() const { return has_timed_; }

 private:
  static constexpr double kUnknownUs = std::numeric_limits<double>::infinity();

  // The two sides of one instance, and the candidate's last call.
  struct Sides {
    TimedSide* reference = nullptr;
    std::unique_ptr<TimedSide> candidate;
    const Draw* former_set = nullptr;
    BatchTime former_batch;
    double former_us = 0;  // a call
    bool reference_is_long = false;
    bool candidate_is_warm = false;  // but for the last call that warms it up, for it has waited
    size_t batch_calls = 1;
    bool has_repeated_round = false;  // one that does not count
    int64_t excess_bytes = 0;         // the most that it was seen to hold over the reference
  };

  bool OutOfTime() const { return device_->LaneSeconds() > options_.lane_seconds_max; }
  absl::StatusOr<std::optional<Fault>> TimeInstance(int index, Instance* instance);
  absl::StatusOr<std::optional<Fault>> WarmUp(Sides* sides);
  absl::StatusOr<std::optional<Fault>> WarmUpBatches(Sides* sides);  // on inputs that it has seen
  absl::StatusOr<std::optional<Fault>> DoSteps(Sides* sides, Instance* instance);
  void TakePathOff();  // all calls so far, by what is known of it now
  // Times a round on the input sets from `next` on; where a GPU's clocks change meanwhile, again on the next ones.
  absl::StatusOr<std::optional<Fault>> TimeSteadyRound(Sides* sides, size_t* next, Instance* instance);
  bool MayRepeatRound(const Sides& sides) const;
  // Returns these input sets, in a batch with an unusual one in the place of one of them: what is right on usual ones
  // alone is right in no batch.
  std::vector<const Draw*> DrawBatch(Batch sets);
  absl::StatusOr<std::optional<Fault>> TimeRound(Sides* sides, Batch sets, Instance* instance);
  std::optional<cuda::ClockReading> ReadClocks();
  absl::StatusOr<TimedCall> CallReference(const Sides& sides, const Draw* repeated, Batch sets);
  // A repeated call, where there is one, and the calls themselves.
  std::optional<Fault> CallCandidate(Sides* sides, Batch sets, ProfileSampler* sampler, TimedCall* call);
  std::optional<Fault> CallOnce(Sides* sides, Batch sets, ProfileSampler* sampler);
  std::optional<Fault> Sample(Sides* sides, Batch set);
  Batch Sets() const { return options_.input_sets; }
  size_t NumSets() const { return Sets().size() - options_.num_warm_ups; }  // that are timed or sampled
  void LookAtMemory(Sides* sides) const;
  bool WantsRepeat(const Sides& sides) const;
  bool HasSamples() const;  // as many as are wanted

  TimingDevice* const device_;
  const TimerOptions options_;
  std::mt19937_64 random_;
  PathCosts path_;
  std::unique_ptr<TimedSide> last_candidate_;  // until the next one is made
  const Draw* last_set_ = nullptr;             // that it was called on last
  std::vector<Instance> instances_;
  ProfileSampler sampler_;
  double least_reference_us_ = kUnknownUs;  // of calls that warm up
  int num_slow_instances_ = 0;
  std::optional<Instance> slow_instance_;                    // the last one that does not count for it
  size_t batch_calls_ = std::numeric_limits<size_t>::max();  // the fewest so far
  double sampling_seconds_ = 0;
  int num_repeated_rounds_ = 0;
  bool has_timed_ = false;
  // To the next process: the last one had no input sets left in place of a round that does not count.
  bool owes_round_ = false;
  std::optional<Round> set_aside_;  // the last one that does not count
  absl::Status clocks_failure_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TIMER_H_
