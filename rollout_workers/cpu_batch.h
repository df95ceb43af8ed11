// A batch on the CPU: the slots of the KV cache and the samples in them. Admits, steps, draws, retires.
#ifndef WARPSMITH_ROLLOUT_WORKERS_CPU_BATCH_H_
#define WARPSMITH_ROLLOUT_WORKERS_CPU_BATCH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/model/model_config.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/generation.h"
#include "rollout_workers/sampler.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

class Decoder;
class KvCache;
class ThreadPool;
struct StepSequence;

// Used by one thread, the engine's. A group's prompt is prefilled once: the samples admitted with it take
// copies of its keys and values and draw from the same row of logits; those admitted later copy from a
// sibling that is still there.
class CpuBatch final : public Batch {
 public:
  CpuBatch(const ModelConfig& config, const EngineOptions& options);
  ~CpuBatch() override;
  CpuBatch(const CpuBatch&) = delete;
  CpuBatch& operator=(const CpuBatch&) = delete;

  // A copy of weights that came as parameters: INVALID_ARGUMENT for others. INTERNAL when LibTorch fails: no usable
  // weights are left then, for some layers may have the new ones and others not.
  bool can_continue() const override { return false; }
  absl::Status SetWeights(const LoadedWeights& weights, paged::EntriesOnChange entries) override;
  absl::Status lost() const override { return absl::OkStatus(); }
  Outcome Settle() override { return {}; }
  absl::Status Sleep(SleepDepth depth) override;
  absl::Status Wake() override;
  bool can_step() const override { return has_weights_; }
  Outcome GiveUp(const absl::Status& status) override;
  // A step or several later the samples of `job` are in slots.
  void Add(GenerationJob job) override;
  void Remove(int64_t job_id) override;
  void RemoveSample(const SamplePlace& place) override;

  int num_active() const override { return static_cast<int>(active_.size()); }
  int num_waiting() const override;
  bool empty() const override { return active_.empty() && waiting_.empty(); }

  // Admits what the scheduler lets in, decodes one token of every sample, hands out those that ended.
  Outcome Step() override;

 private:
  struct Group;
  struct Slot;
  struct Logits;
  // A draw to make after a step: the sample in `slot` from row `row` of the logits.
  struct Draw {
    int slot = 0;
    int row = 0;
  };
  // After the step `slot` gets a copy of the prompt that the step prefilled into `source`.
  struct Follower {
    int slot = 0;
    int source = 0;
  };

  void ScheduleDecodes();
  void AdmitWaiting(Outcome* outcome);
  void AdmitWithPrefill(std::shared_ptr<Group> group, int num_samples);
  void AdmitBesideSibling(std::shared_ptr<Group> group, int num_samples, int sibling);
  int OccupySlot(std::shared_ptr<Group> group);
  void FreeSlot(int slot);
  int FindSibling(const Group& group) const;
  absl::Status RunModel();
  void CopyPromptsToFollowers();
  void DrawTokens(Outcome* outcome);
  void DrawOne(Sampler& sampler, Draw draw);
  void Retire(Outcome* outcome);
  void FailActiveJobs(const absl::Status& status, Outcome* outcome);
  void FailJob(int64_t job_id, const absl::Status& status, Outcome* outcome);
  bool IsStop(int32_t token_id) const;

  const EngineOptions options_;
  const int64_t num_token_ids_;
  bool has_weights_ = false;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
  std::vector<Sampler> samplers_;  // one a thread

  std::deque<std::shared_ptr<Group>> waiting_;  // groups with samples that have no slot yet, oldest first
  std::vector<Slot> slots_;
  std::vector<int> active_;  // slots in use, in order of admission
  std::vector<int> free_;    // the others

  // Of the step in hand.
  std::vector<StepSequence> sequences_;
  std::vector<Draw> draws_;
  std::vector<Follower> followers_;
  std::unique_ptr<Logits> logits_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_CPU_BATCH_H_
