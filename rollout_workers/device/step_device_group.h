// GPUs that carry out the same plans together, each on its shard of the model; or one GPU with the whole. Without CUDA:
// what a member does, and how members exchange sums, stands behind StepDevice.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_GROUP_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rollout_workers/device/rank_threads.h"
#include "rollout_workers/device/step_device.h"

namespace warpsmith::device {

// Member `rank` holds shard `rank`, and its calls are made by thread `rank`, so that members may wait for each other's
// kernels. Results are the first member's. A step that one member cannot launch or end is lost to all, and with it the
// group: the others wait for sums that do not come, until `abort` ends what they wait in. In other calls no member
// waits for another: one that fails is heard when all are back, and the group is lost where that member is. So it is in
// all calls of a member that is alone.
//
// Every call ends: CUDA's own waits have no deadline, and a member whose thread is not back in time is lost.
class StepDeviceGroup final : public StepDevice {
 public:
  struct Member {
    std::string name;  // "cuda:1", for errors
    std::unique_ptr<StepDevice> device;
  };

  // Beyond a member's own deadline, which says more. Also how long a launch may take that loads kernels, for that waits
  // for its GPU, and so for the others.
  static constexpr absl::Duration kBeyondStep = absl::Seconds(30);

  // At least one member, all with as many pages; `abort` is null where it is one. `step_timeout` is that of each, and
  // `beyond` it a thread is given up, but where it reads a checkpoint, which may come over a network.
  StepDeviceGroup(std::vector<Member> members, std::function<void()> abort, absl::Duration step_timeout,
                  absl::Duration beyond = kBeyondStep);
  ~StepDeviceGroup() override;
  StepDeviceGroup(const StepDeviceGroup&) = delete;
  StepDeviceGroup& operator=(const StepDeviceGroup&) = delete;

  int num_pages() const override { return num_pages_; }
  absl::Status lost() const override { return lost_; }
  absl::Status LoadHuggingFace(const std::filesystem::path& directory) override;
  absl::Status SetParameters(const Parameters& parameters) override;
  absl::Status FillRandom(uint64_t seed) override;
  // Each member takes its own: a source that has a shard for every GPU.
  absl::Status TakeWeights(WeightSource& source) override;
  absl::Status Launch(const paged::StepPlan& plan) override;
  absl::StatusOr<std::vector<paged::TokenResult>> AwaitOldest() override;
  void DropSteps() override;
  void FreePages() override;
  absl::Status AllocatePages() override;
  void FreeWeights() override;
  absl::Status AllocateWeights() override;

 private:
  using Work = std::function<absl::Status(StepDevice& device)>;

  absl::Status Together(Work work, absl::Duration timeout);
  absl::Duration BeyondSteps(int num_steps) const;
  absl::Status Step(Work work);
  absl::Status Lose(const absl::Status& status);
  absl::Status Named(const RankOutcome& outcome) const;

  std::vector<std::string> names_;
  std::shared_ptr<std::vector<std::unique_ptr<StepDevice>>> devices_;  // also of threads that are not back
  const std::function<void()> abort_;
  const absl::Duration step_timeout_, beyond_;
  const int num_pages_;
  RankThreads threads_;
  absl::Status lost_;  // why nothing can be done any more
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_GROUP_H_
