// A StepDevice on one GPU.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_CUDA_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/device_decoder.h"
#include "core/model/device_memory.h"
#include "core/model/event_arrival_cuda.h"
#include "core/model/handles_cuda.h"
#include "core/model/tensor_shard.h"
#include "rollout_workers/device/open_cuda_step_device.h"
#include "rollout_workers/device/step_block.h"
#include "rollout_workers/device/step_device.h"
#include "rollout_workers/device/step_graphs_cuda.h"
#include "rollout_workers/device/step_launch_cuda.h"
#include "rollout_workers/device/step_top_tokens_cuda.h"

namespace warpsmith::device {

// Pages that a shard leaves room for on the one GPU of the options, as OpenCudaStepDevice counts them.
absl::StatusOr<int> FindPages(const ModelConfig& config, const CudaStepOptions& options, TensorShard shard);

// Of a GPU of a group: its place, and how it works with the others.
struct StepShard {
  TensorShard shard;
  StepPeers peers;
};

// Owns one stream for all steps. A step is: one copy of its block to the device, its page copies, its layers and
// samples (a graph where it has a bucket), one copy of its results to the host, and an event. The stream keeps the
// steps' order, so that one block on the device is enough; the host has two, for it writes the next while the last one
// may not have been copied yet.
class CudaStepDevice final : public StepDevice {
 public:
  // As OpenCudaStepDevice of one GPU, with num_token_ids over 0. Of a group, whose steps are launched by a thread a
  // GPU, num_pages is over 0 and all have one: results are those of the GPU that samples, and mean nothing of others.
  static absl::StatusOr<std::unique_ptr<CudaStepDevice>> Create(
      const ModelConfig& config, const CudaStepOptions& options,
      std::optional<StepShard> shard = std::nullopt);
  ~CudaStepDevice() override;
  CudaStepDevice(const CudaStepDevice&) = delete;
  CudaStepDevice& operator=(const CudaStepDevice&) = delete;

  int num_pages() const override { return num_pages_; }
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

  // Of all steps: what is put on it before a launch, the launch waits for.
  cudaStream_t stream() const { return memory_->stream.get(); }
  // [sequences_max + 1] on the device.
  const int32_t* last_tokens() const { return step_memory_.last_tokens; }
  int num_graphs() const { return memory_->graphs.num_captured(); }

 private:
  // What the host keeps of one step.
  struct HostStep {
    PinnedBlock block;
    PinnedBlock results;
    CudaEvent done;
    int64_t arrival = 0;  // what EventArrival counts to with `done`
    uint64_t step = 0;
    int num_samples = 0;
  };
  // What a lost device may still write to: never freed then.
  struct Memory {
    std::unique_ptr<DeviceDecoder> decoder;
    DeviceMemory block;
    DeviceMemory last_tokens;
    DeviceMemory results;  // token ids [queries_max], then log-probs
    StepTopTokens top_tokens;
    std::array<HostStep, 2> host_steps;
    CudaEvent drained;
    CudaStream stream;
    StepGraphs graphs;
  };

  CudaStepDevice(const CudaStepOptions& options, int num_pages, std::optional<StepPeers> peers,
                 std::unique_ptr<Memory> memory, EventArrival arrival);

  absl::Status Begin();
  absl::Status LaunchKernels(const paged::StepPlan& plan);
  absl::Status LaunchLayers(const paged::StepPlan& plan);
  absl::Status Lose(const absl::Status& status);
  absl::Status LoseIfBroken(const absl::Status& status);
  size_t results_bytes() const;

  const CudaStepOptions options_;
  const int device_;
  const int num_pages_;
  const std::optional<StepPeers> peers_;
  const StepBlock block_;
  std::unique_ptr<Memory> memory_;
  EventArrival arrival_;
  StepMemory step_memory_;
  int64_t num_followed_ = 0;  // events that arrival_ counts
  int64_t num_launched_ = 0;
  int64_t num_awaited_ = 0;
  absl::Status lost_;  // why nothing can be done any more
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_CUDA_H_
