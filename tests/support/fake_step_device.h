// A StepDevice of numbers: a token is a hash of the tokens that its row attends to, as the pages hold them.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_STEP_DEVICE_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_STEP_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "rollout_workers/device/step_device.h"
#include "rollout_workers/paged/paged_batch.h"
#include "rollout_workers/paged_device_batch.h"

namespace warpsmith {

// Shared by a test and its device. Numbers count from 0; -1: never.
struct FakeStepDeviceState {
  std::atomic<int64_t> failing_launch = -1;  // refused, once
  std::atomic<int64_t> late_step = -1;       // not done in time, and the device is lost with it
  std::atomic<int64_t> broken_step = -1;     // the logits of its first sample are no numbers
  std::atomic<int64_t> num_launched = 0;     // refused ones included
  std::atomic<int> num_in_flight = 0;
  std::atomic<int> num_in_flight_max = 0;
  std::atomic<uint64_t> weights = 0;  // what tokens depend on: differs where the weights do
  std::atomic<bool> has_pages = false;
  std::atomic<bool> has_weight_memory = true;
  std::atomic<bool> memory_is_taken = false;  // by others: none can be allocated
  std::atomic<bool> refuses_weights = false;  // of a WeightSource
  std::atomic<bool> loses_weights = false;    // the device is lost while it takes them
  // Finite: its calls have a thread of their own, which is given up after this.
  absl::Duration call_timeout = absl::InfiniteDuration();
  // What takes weights or memory, and gives it back, does not end before. Also the thread's that hangs.
  std::shared_ptr<absl::Notification> hangs_until;
};

// The log-prob that goes with a token.
float HashedLogProb(absl::Span<const int32_t> tokens_before, uint64_t seed, uint64_t draw, uint64_t weights);

class FakeStepDevice final : public device::StepDevice {
 public:
  FakeStepDevice(const paged::PagedBatchOptions& options, std::shared_ptr<FakeStepDeviceState> state);

  int num_pages() const override { return options_.num_pages; }
  absl::Status lost() const override { return lost_; }
  absl::Status LoadHuggingFace(const std::filesystem::path& directory) override;
  absl::Status SetParameters(const Parameters& parameters) override;
  absl::Status FillRandom(uint64_t seed) override;
  absl::Status TakeWeights(WeightSource& source) override;
  absl::Status Launch(const paged::StepPlan& plan) override;
  absl::StatusOr<std::vector<paged::TokenResult>> AwaitOldest() override;
  void DropSteps() override;
  void FreePages() override;
  absl::Status AllocatePages() override;
  void FreeWeights() override;
  absl::Status AllocateWeights() override;

 private:
  struct LaunchedStep {
    int64_t number = 0;
    uint64_t step = 0;
    std::vector<paged::TokenResult> results;
  };

  void HangIfTold() const;
  absl::Status LoseIfTold();
  paged::TokenResult Sample(const paged::StepPlan& plan, const paged::SampleRow& sample);

  const paged::PagedBatchOptions options_;
  const std::shared_ptr<FakeStepDeviceState> state_;
  std::vector<int32_t> entries_;      // [num_pages, page_tokens] token ids
  std::vector<int32_t> last_tokens_;  // [sequences_max + 1]
  std::deque<LaunchedStep> launched_;
  absl::Status lost_;
};

// A batch for Engine(config, options, events, batch) whose answers are those of FakeStepDevice; without
// `num_pages` it has pages for `num_slots` whole contexts.
std::unique_ptr<PagedDeviceBatch> MakeFakeDeviceBatch(const ModelConfig& config, const EngineOptions& options,
                                                      std::shared_ptr<FakeStepDeviceState> state,
                                                      int num_pages = 0, DeviceTurns turns = {});

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_STEP_DEVICE_H_
