// From a candidate to a judgement: verify, time against the baseline, profile.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/measure/judgement.h"
#include "reward_service/measure/lane.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/calibration.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/profile/profile_sampler.h"
#include "reward_service/referee/task/task_pool.h"

namespace warpsmith {

// What a judge works with; all outlives it.
struct JudgeTools {
  const Lane* lane = nullptr;
  TaskPool* pool = nullptr;
  Zygote* native_parent = nullptr;
  Zygote* python_parent = nullptr;
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

  // A status is a failure of the machine; whatever candidate or task did is in the judgement.
  absl::StatusOr<Judgement> Run();

 private:
  struct Instance {
    std::vector<double> ratios;
    std::vector<double> reference_us;
    std::vector<double> candidate_us;
    bool is_long = false;  // a call of the candidate
  };
  static constexpr double kUnknownUs = std::numeric_limits<double>::infinity();
  // By its number with the sampler.
  struct Watched {
    size_t call;
    double us;
    bool warm_up;
  };

  absl::Status RunAll();
  absl::StatusOr<std::unique_ptr<Jail>> NextJail(const Jail* baseline);
  bool Convict(Fault fault, Jail* jail);
  // The following return false when the judgement is made and the candidate has failed.
  absl::StatusOr<bool> Verify();
  absl::StatusOr<bool> VerifyOnInputs();
  bool VerifyOne(Jail& jail, const Draw& draw);
  bool TakeInputsBack(Jail& jail, const Draw& draw);
  bool CheckFormerOutputs(Jail& jail, const Draw& draw);
  bool CheckGuards(Jail& jail, const Draw& draw);
  // True when it has failed.
  bool ConvictView(Jail& jail, const Draw& draw, size_t index);
  absl::StatusOr<bool> Time();
  absl::StatusOr<bool> TimeInstance(int index, Instance& instance);
  bool TimedCall(Jail& jail, const Draw& draw, std::vector<double>& microseconds);
  bool Rewarm(Jail& jail);
  bool Call(Jail& jail, const Draw& draw, std::vector<double>& microseconds);
  bool CheckTimed(Jail& jail, const Draw& draw);
  absl::StatusOr<double> BaselineCall(Jail& baseline, const Draw& draw);
  absl::StatusOr<bool> Round(Jail& jail, Jail& baseline, std::array<const Draw*, 2> draws,
                             Instance& instance);
  absl::StatusOr<bool> WarmUp(Jail& jail, Jail& baseline, Instance& instance);
  absl::Status MeasurePaths();
  const std::vector<const Draw*>& TimingDraws() const;
  absl::StatusOr<bool> WatchedCall(Jail& jail, Jail& baseline, const Draw& draw);
  absl::Status WatchedBaselineCall(Jail& baseline, const Draw& draw);
  bool WatchedAndTimedCall(Jail& jail, const Draw& draw, std::vector<double>& microseconds);
  bool UnusualCall(Jail& jail);
  void CompareWatched(const Instance& instance);
  // What a timed process does after its warm calls.
  enum class Step { kRound, kWatched, kUnusual };
  std::vector<Step> Plan(size_t num_draws, bool is_long) const;
  bool KnowWhoseWork() const;
  size_t num_warm_ups() const;
  bool KnowEnough(const std::vector<Instance>& instances) const;
  void ReportTiming(const std::vector<Instance>& instances);
  void ReportProfile();
  double LibraryWork() const;
  double LeastMicroseconds() const;
  EmptyCandidate& empty_candidate() const;  // of the candidate's kind
  // Nobody who is judged may foresee it.
  static bool Coin();
  Program MakeProgram(int num_threads) const;
  double LaneSeconds() const;

  const JudgeTools& tools_;
  const JudgeRequest& request_;
  absl::Time deadline_;
  Judgement judgement_;
  std::shared_ptr<PooledTask> pooled_;
  PreparedTask* task_ = nullptr;
  UniqueFd source_fd_;
  std::unique_ptr<ProfileSampler> sampler_;
  std::unique_ptr<ProfileSampler> path_sampler_;                    // of the empty candidate, beside it
  ProfileSampler reference_sampler_{ProfileSampler::Rate::kDense};  // of small tasks,
  ProfileSampler reference_path_sampler_{ProfileSampler::Rate::kDense};
  double path_us_ = kUnknownUs;            // of a call of the candidate's kind that does nothing,
  double reference_path_us_ = kUnknownUs;  // and of the reference's
  const Draw* former_draw_ = nullptr;      // of the present jail's last call,
  double former_us_ = 0;                   // and its time
  bool reference_is_long_ = false;         // a call of it
  std::vector<Watched> watched_;           // of the present jail
  int num_warm_up_samples_ = 0;            // of the present jail
  int num_watched_ = 0;                    // of all of them, after the warm-up,
  int num_slow_watched_ = 0;               // and of those: not like timed calls
  bool takes_parameters_ = false;          // other than those of its construction
  bool scale_independent_right_ = false;
  absl::Time lane_since_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_
