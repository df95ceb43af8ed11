// What is kept of a task for the cores of a lane: warm jails of its reference, and buffers.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_LANE_TASK_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_LANE_TASK_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/measure/referee.h"
#include "reward_service/measure/statistics.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/reference_timing.h"
#include "reward_service/referee/task/prepared_task.h"

namespace warpsmith {

// The draws of all rounds of batches take so small a part of a GPU's memory at most.
inline constexpr int64_t kBatchShare = 8;

// What an oracle may leave a device to do behind its answer.
inline constexpr double kOracleWorkSeconds = 2;

// Calls that one step of timing makes at most where `store` lies. A process's turn on a GPU costs more than a short
// kernel, so there are several: as many as draws are kept for, and as the reference needs to last long beside an empty
// call. On a core there is nothing of the kind. Between the calls of a Python program parameters are copied: one call
// where this takes long, and where an output may lie among them.
int BatchedCallsMax(const TensorStore& store, const TaskLayout& layout, const RefereeFacts& facts);

// For the judge's thread, but for the two calls of TaskOnDevice; baselines() once the task is completed.
class LaneTask : public TaskOnDevice {
 public:
  // Of tasks that a CpuDevice judges, or with a GPU's store a GpuDevice. `zygote` is of the Python kind; its children
  // reach the store. All outlive them. `facts` are known before the first task is made.
  static PlaceTask Place(Zygote* zygote, const TaskLimits& limits, int num_threads, TensorStore& store,
                         const RefereeFacts& facts);
  // What Place() made for it.
  static LaneTask& Of(PreparedTask& task) { return static_cast<LaneTask&>(task.on_device()); }

  absl::Status StartReference(const PreparedTask& task) override;
  absl::Status WarmReference(const PreparedTask& task, absl::Time deadline) override;
  // For whoever holds the lane, before baselines() are used: a GPU has no other core on which they could be made ready
  // while others are timed, so there StartReference() has the process open it, and all else waits for this call. Beside
  // others, where memory was scarce, there may be none afterwards: alone there is.
  // INVALID_ARGUMENT: the task is at fault.
  absl::Status AwaitReference(const PreparedTask& task);

  TensorStore& store() const override { return store_; }
  DeviceTurn* turn() const override { return store_.turn(); }
  absl::Status AwaitIdle(Behind what) override;
  bool EndReference() override;
  int NumBatchedCalls(const TaskLayout& layout) const override {
    return BatchedCallsMax(store_, layout, facts_);
  }
  int64_t BytesOf(const TaskLayout& layout, int64_t num_draws, TaskUse use) const override;
  std::vector<std::unique_ptr<Jail>>& baselines() { return baselines_; }

  // A process for another form of the reference, which has not begun. It shares the inputs of the first eager one.
  absl::StatusOr<std::unique_ptr<Jail>> StartForm(const PreparedTask& task, const ReferenceForm& form);
  // What such a process begins with, in some form.
  Program ProgramOf(const PreparedTask& task, const std::string& form, absl::Time deadline) const;
  // What other forms of the reference take, by their keys, as far as they were measured.
  std::map<std::string, FormTime>& form_times() { return form_times_; }

  ReferencePace& reference_pace() { return reference_pace_; }

  // Buffers for a candidate's jail, used ones where there are some. Who is timed beside a baseline shares its
  // inputs: where pages lie can cost a call a quarter of its time, and is then the same luck for both.
  // Without one the inputs are for verification.
  absl::StatusOr<Buffers> BorrowBuffers(const TaskLayout& layout, CandidateKind kind, const Jail* baseline);
  // New ones, whose inputs nobody else has.
  absl::StatusOr<Buffers> OwnBuffers(const TaskLayout& layout, CandidateKind kind);
  void ReturnBuffers(Buffers buffers);

 private:
  LaneTask(Zygote* zygote, const TaskLimits& limits, int num_threads, TensorStore& store,
           const RefereeFacts& facts)
      : zygote_(zygote), limits_(limits), num_threads_(num_threads), store_(store), facts_(facts) {}
  absl::StatusOr<std::unique_ptr<ChildProcess>> ForkReference(const PreparedTask& task, bool compiles);
  absl::StatusOr<std::unique_ptr<Jail>> MakeJail(const PreparedTask& task,
                                                 std::unique_ptr<ChildProcess> process,
                                                 absl::Duration call_time_max,
                                                 std::shared_ptr<TensorMemory> inputs);
  absl::Status Start(const PreparedTask& task);
  absl::Status Warm(const PreparedTask& task, absl::Time deadline);

  Zygote* const zygote_;
  const TaskLimits limits_;
  const int num_threads_;
  TensorStore& store_;
  const RefereeFacts facts_;
  std::unique_ptr<ChildProcess> forked_reference_;  // on a GPU, until it is a baseline
  std::vector<std::unique_ptr<Jail>> baselines_;
  bool reference_ended_ = false;  // by EndReference(); for whoever has the turn, or the lane
  std::map<std::string, FormTime> form_times_;
  ReferencePace reference_pace_;
  std::shared_ptr<TensorMemory> verification_inputs_;
  std::vector<std::vector<std::unique_ptr<TensorMemory>>> free_outputs_;  // of NumBatchedCalls() each
  std::atomic<int64_t> free_output_bytes_ = 0;  // for those who count the task's memory meanwhile
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_LANE_TASK_H_
