// Candidates on a GPU: jails that open it, its own memory, its idleness as the end of a call.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_GPU_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_GPU_DEVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "reward_service/referee/cpu_device.h"
#include "reward_service/referee/reference_timing.h"
#include "reward_service/referee/tensors/gpu_store.h"

namespace warpsmith {

// As on a lane's cores, where programs start and where their calls are stopped; but the clock goes on until the GPU is
// idle.
class GpuDevice : public JudgingDevice {
 public:
  // Both outlive it. The tools' zygotes, and the empty candidates, can reach the store.
  static absl::StatusOr<std::unique_ptr<JudgingDevice>> Open(const LaneTools& tools, GpuStore* store,
                                                             const Judgement& judgement);

  DeviceTurn* turn() override { return store_->turn(); }
  absl::Status AwaitIdle() override;
  absl::Status HoldLane() override { return tools_.lane->Hold(); }
  void LeaveLane() override;
  // Want of memory, time, and a GPU that fails: what others take of it, or do to it, is no program's fault. What a
  // program says of it is believed: it gains nothing by being judged alone. Any other fault may come of an allocation
  // that failed and that nobody checked, if memory was scarce at some time since then. Most answers of an untrained
  // policy are faults, so not each of them is judged again.
  bool MayBeOthersDoing(const Fault& fault, absl::Time since) override;
  void AwaitSpare(PreparedTask& task, Room room) override { host_->AwaitSpare(task, room); }
  absl::StatusOr<StartedProgram> StartCandidate(PreparedTask& task, Room room) override;
  // In a turn, for the reference computes on the GPU, too; the turn may be shared, for nothing is timed yet. Jails that
  // are made ready ahead are waited for here, so that fewer are to be waited for alone.
  absl::Status PrepareReference(PreparedTask& task) override;
  // Where there is memory for it: it holds some while others are verified.
  void KeepVerified(std::unique_ptr<CheckedProgram> program) override;
  std::optional<Fault> PrepareCandidates(PreparedTask& task, Room room, Batch warm_ups, int num) override;
  bool has_kept_candidates() const override { return host_->has_kept_candidates(); }
  absl::Status EndCandidates() override { return host_->EndCandidates(); }
  bool KillKeptCandidates() override { return store_->EndWaiting(); }
  bool HasPlenty() override { return store_->HasPlenty(); }
  absl::Status PrepareTiming(PreparedTask& task) override;
  absl::StatusOr<std::unique_ptr<TimingDevice>> StartTiming(PreparedTask& task, Room room,
                                                            absl::Time lane_since) override;
  TimerOptions TimingOptions(const TaskLayout& layout) const override;
  // As on the host, with kEmptied before kOpen. A Python program that can have no kernels would fail in the sealed
  // room.
  std::vector<Room> Rooms(const TaskLayout& layout) const override;
  absl::Status OpenRoom(Room room) override { return host_->OpenRoom(room); }
  // Of a Python program, for there it cannot read what it may want to import.
  bool JudgesErrorsAgain() const override { return !is_native_; }
  // A process costs a context, of which a driver makes some six a second, and the GPU's memory is the same for all: so
  // there are few, each with several rounds.
  TimingEffort EffortOf(const TimingEffort& asked) const override;
  void Describe(const TaskLayout& layout, v1::Timing* timing, v1::Profile* profile) const override;
  absl::Status CheckHealth() override { return store_->Health(); }
  absl::Status Failure() override { return store_->Failure(); }

 private:
  GpuDevice(const LaneTools& tools, GpuStore* store, const Judgement& judgement,
            std::unique_ptr<JudgingDevice> host)
      : tools_(tools),
        store_(store),
        judgement_(judgement),
        is_native_(judgement.request.kind == CandidateKind::kNative),
        host_(std::move(host)) {}
  // Nobody opens the GPU beside whoever is timed.
  void AwaitSpares();
  // As it is known, or measured now, where the judgement has the time. What is the form's own doing is known from then
  // on; for another reason it is unavailable this time alone.
  absl::StatusOr<FormTime> MeasureOnce(const ReferenceForm& form, PreparedTask& task);

  const LaneTools& tools_;
  GpuStore* const store_;
  const Judgement judgement_;
  const bool is_native_;
  const std::unique_ptr<JudgingDevice> host_;  // on which the processes run
  // Of the task that is timed, in the order asked for.
  std::vector<std::pair<const ReferenceForm*, FormTime>> forms_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_GPU_DEVICE_H_
