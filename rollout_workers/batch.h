// The slots of the KV cache and the samples in them: admits, steps, draws, retires.
#ifndef WARPSMITH_ROLLOUT_WORKERS_BATCH_H_
#define WARPSMITH_ROLLOUT_WORKERS_BATCH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/model/model_config.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/generation.h"
#include "rollout_workers/sampler.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// A sample by what its job calls it.
struct SamplePlace {
  int64_t job_id = 0;
  int task_index = 0;
  int sample_index = 0;
};

class Decoder;
class KvCache;
class ThreadPool;
struct StepSequence;

// Used by one thread, the engine's. A group's prompt is prefilled once: the samples admitted with it take
// copies of its keys and values and draw from the same row of logits; those admitted later copy from a
// sibling that is still there.
class Batch {
 public:
  Batch(const ModelConfig& config, const EngineOptions& options);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Takes a copy of the weights; nothing may be in the batch. INTERNAL when LibTorch fails, with no usable
  // weights left.
  absl::Status SetWeights(const LoadedWeights& weights);

  // Queues a valid job. A step or several later its samples are in slots.
  void Add(GenerationJob job);
  // Drops what there is of a job.
  void Remove(int64_t job_id);
  // Drops a sample that is in a slot.
  void RemoveSample(const SamplePlace& place);

  int num_active() const { return static_cast<int>(active_.size()); }
  int num_waiting() const;
  bool empty() const { return active_.empty() && waiting_.empty(); }

  struct Outcome {
    std::vector<FinishedSample> finished;
    // Jobs that broke and are already removed.
    std::vector<FailedJob> failed;
    // Tokens of jobs that report them, each sample's in order.
    std::vector<DrawnToken> drawn;
    int num_drawn = 0;
    int num_prefilled = 0;
  };
  // Admits what the scheduler lets in, decodes one token of every sample, hands out those that ended. Not
  // when empty.
  Outcome Step();

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
  bool IsStop(int32_t token_id) const;

  const EngineOptions options_;
  const int64_t num_token_ids_;
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

#endif  // WARPSMITH_ROLLOUT_WORKERS_BATCH_H_
