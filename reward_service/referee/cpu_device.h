// Candidates on the cores of a lane: jails, the lane's clock, and what was measured of the host.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CPU_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/unique_fd.h"
#include "reward_service/measure/lane.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/calibration.h"
#include "reward_service/referee/candidate_jails.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/lane_timing.h"
#include "reward_service/referee/libraries/late_zygote.h"
#include "reward_service/referee/process/zygote.h"

namespace warpsmith {

// What a lane's judgements share; all outlives them.
struct LaneTools {
  const Lane* lane = nullptr;
  Zygote* native_zygote = nullptr;
  Zygote* python_zygote = nullptr;
  LateZygote* native_zygote_with_blas = nullptr;
  LateZygote* python_zygote_with_products = nullptr;
  EmptyCandidate* empty_native = nullptr;
  EmptyCandidate* empty_python = nullptr;
  RefereeFacts facts;
  int64_t jail_memory_bytes_max = 0;
  const GpuClockReader* clocks = nullptr;  // of the GPU, where the lane has one
  bool tells_launches = false;             // jails have a GPU, and CUPTI
  AllKeptJails* kept = nullptr;            // of a GPU, likewise
  CorePace* core_pace = nullptr;           // of the lane of a GPU, whose references are launched by its core
};

class CpuDevice : public JudgingDevice {
 public:
  // `tools` outlives it.
  static absl::StatusOr<std::unique_ptr<JudgingDevice>> Open(const LaneTools& tools,
                                                             const Judgement& judgement);

  void AwaitSpare(PreparedTask& task, Room room) override;
  std::vector<Room> Rooms(const TaskLayout& layout) const override;
  absl::Status OpenRoom(Room room) override { return ZygoteIn(room).status(); }
  absl::StatusOr<StartedProgram> StartCandidate(PreparedTask& task, Room room) override;
  // Which was ended where it failed beside another candidate; else it is warm since the task was completed.
  absl::Status PrepareReference(PreparedTask& task) override {
    return LaneTask::Of(task).AwaitReference(task);
  }
  void KeepVerified(std::unique_ptr<CheckedProgram> program) override;
  std::optional<Fault> PrepareCandidates(PreparedTask& task, Room room, Batch warm_ups, int num) override;
  bool has_kept_candidates() const override { return kept_ && !kept_->empty(); }
  absl::Status EndCandidates() override;
  absl::StatusOr<std::unique_ptr<TimingDevice>> StartTiming(PreparedTask& task, Room room,
                                                            absl::Time lane_since) override;
  TimerOptions TimingOptions(const TaskLayout& layout) const override;
  void Describe(const TaskLayout& layout, v1::Timing* timing, v1::Profile* profile) const override;
  // Cores are not worn by what runs there.
  absl::Status CheckHealth() override { return absl::OkStatus(); }

 private:
  CpuDevice(const LaneTools& tools, const Judgement& judgement, UniqueFd source_fd)
      : tools_(tools), judgement_(judgement), source_fd_(std::move(source_fd)) {
    if (tools.kept != nullptr) kept_.emplace(tools.kept);
  }

  bool is_native() const { return judgement_.request.kind == CandidateKind::kNative; }
  absl::StatusOr<Zygote*> ZygoteIn(Room room) const;
  absl::StatusOr<CandidateJails> JailsIn(Room room);
  // Whether a process that was made ready beside others is as good as one that is started alone: it has time left, and
  // has not lacked memory, for want of which a program may go a slower way without a word.
  bool CanBeTimed(CheckedJail& jail) const;

  const LaneTools& tools_;
  const Judgement judgement_;
  const UniqueFd source_fd_;       // of a Python candidate
  std::vector<UniqueFd> emptied_;  // the candidate's libraries for Room::kEmptied, once they were wanted
  std::optional<KeptJails> kept_;  // nothing where programs have cores of their own
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CPU_DEVICE_H_
