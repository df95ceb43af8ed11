// What the engine's thread decodes with: takes jobs, steps, hands out samples.
#ifndef WARPSMITH_ROLLOUT_WORKERS_BATCH_H_
#define WARPSMITH_ROLLOUT_WORKERS_BATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/generation.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// A sample by what its job calls it.
struct SamplePlace {
  int64_t job_id = 0;
  int task_index = 0;
  int sample_index = 0;
};

// Used by one thread at a time: the one that makes it, then the engine's.
class Batch {
 public:
  // What one call of Step has brought.
  struct Outcome {
    std::vector<FinishedSample> finished;
    // Jobs that broke and are already removed.
    std::vector<FailedJob> failed;
    // Tokens of jobs that report them, each sample's in order.
    std::vector<DrawnToken> drawn;
    // Steps that ended, and what they drew. Prompt tokens count when they are given to a step.
    int num_steps = 0;
    int num_drawn = 0;
    int num_prefilled = 0;
    // Time in which another process had the device, so that no step began.
    absl::Duration waited;
  };

  virtual ~Batch() = default;

  // Takes the device from other processes, waiting a moment. Returns whether this has it. Called before SetWeights,
  // Sleep and Wake; steps take it themselves.
  virtual bool HoldDevice() { return true; }
  // Gives the device up to other processes. Called when nothing can be stepped; the next step takes it again.
  virtual void Rest() {}

  // Whether samples can go on with other weights than they began with. Any thread.
  virtual bool can_continue() const = 0;

  // Takes the weights, after Settle; the batch must be empty with kRequireNone, the only one where !can_continue().
  // After an error no usable weights are left: what waits or decodes is held until others are set.
  virtual absl::Status SetWeights(const LoadedWeights& weights, paged::EntriesOnChange entries) = 0;

  // UNAVAILABLE: why the device can do nothing any more; nothing can be stepped then, and Settle fails all there is.
  virtual absl::Status lost() const = 0;

  // Waits for what is under way on a device, and hands out what it brought.
  virtual Outcome Settle() = 0;

  // Gives memory of the device back, after Settle, and takes it again; samples are held meanwhile. Both may be
  // repeated. Wake: RESOURCE_EXHAUSTED where others have taken the memory; it sleeps on then. UNIMPLEMENTED without a
  // device.
  virtual absl::Status Sleep(SleepDepth depth) = 0;
  virtual absl::Status Wake() = 0;
  // Not where it sleeps, lacks weights or is lost.
  virtual bool can_step() const = 0;

  // Ends every job there is with `status`, while the batch sleeps or lacks weights.
  virtual Outcome GiveUp(const absl::Status& status) = 0;

  // Queues a valid job.
  virtual void Add(GenerationJob job) = 0;
  // Drops what there is of a job.
  virtual void Remove(int64_t job_id) = 0;
  // Drops a sample that has a token.
  virtual void RemoveSample(const SamplePlace& place) = 0;

  virtual int num_active() const = 0;
  virtual int num_waiting() const = 0;
  // Nothing waits, decodes or is under way on a device.
  virtual bool empty() const = 0;

  // Gets on by about one token of every sample, and hands out those that ended. Where another process has the device it
  // waits a moment for it, and may get on by nothing. Not when empty, and only if can_step().
  virtual Outcome Step() = 0;
};

// A batch where `options` place it. On a GPU: the errors of OpenCudaStepDevice (rollout_workers/device).
absl::StatusOr<std::unique_ptr<Batch>> MakeBatch(const ModelConfig& config, const EngineOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_BATCH_H_
