// New weights in two steps: prepared beside those in use, then committed. Also what else is done to an engine's memory.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_SWITCH_H_
#define WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_SWITCH_H_

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// Any thread; one call at a time goes on, the others wait for it: DEADLINE_EXCEEDED where it did not end in time. All
// calls may be repeated.
class WeightsSwitch {
 public:
  // `engine` must outlive this.
  WeightsSwitch(const ModelConfig& config, Engine* engine) : config_(config), engine_(engine) {}

  // The errors of MakeTransport and of its Prepare; then what was prepared before is still there. Weights that are in
  // use or prepared already are not read again. A broadcast is joined all the same, for others wait for this worker:
  // what lay prepared on the GPU goes first, to make room. FAILED_PRECONDITION: a broadcast to an engine that sleeps.
  // INVALID_ARGUMENT: weights of a model with other ModelFields than `config`, with names and values.
  absl::Status Prepare(const OfferedWeights& published, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Puts the prepared `policy_version` to use as Engine::SwapWeights says; nothing to do if it is in use already.
  // FAILED_PRECONDITION: it was not prepared (with the versions that are there); otherwise the errors of SwapWeights.
  absl::Status Commit(uint64_t policy_version, absl::Time deadline,
                      paged::EntriesOnChange entries = paged::EntriesOnChange::kRequireNone)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As the engine's. Weights that lie prepared on a GPU go, and are to be prepared again after Wake.
  absl::Status Sleep(SleepDepth depth, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Wake(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // `work`, when no other call goes on.
  absl::Status InTurn(absl::Time deadline, absl::FunctionRef<absl::Status()> work)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status PrepareInTurn(const OfferedWeights& published, absl::Time deadline);
  absl::Status CommitInTurn(uint64_t policy_version, absl::Time deadline, paged::EntriesOnChange entries);
  void DropPreparedOnGpu();

  const ModelConfig config_;
  Engine* const engine_;
  absl::Mutex mutex_;
  bool is_taken_ ABSL_GUARDED_BY(mutex_) = false;  // a call goes on
  std::optional<LoadedWeights> prepared_;          // of the call that goes on
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_SWITCH_H_
