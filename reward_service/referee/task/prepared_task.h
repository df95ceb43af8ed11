// A task made ready to be judged: its oracle and secret draws, and what its device keeps of it.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_PREPARED_TASK_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_PREPARED_TASK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "reward_service/jail/messages.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/referee/process/child_process.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/task/draw_request.h"
#include "reward_service/referee/task/task_on_device.h"
#include "reward_service/referee/task/task_turns.h"
#include "reward_service/referee/tensors/draw.h"

namespace warpsmith {

struct TaskLimits {
  int64_t oracle_memory_bytes_max = 0;
  // Over an oracle's life: all exact draws, of up to ten calls each, or more of others. When half of it is left another
  // one is started, which has besides what its models take to be constructed, on all threads: that is known by then.
  int oracle_cpu_seconds_max = 60;
  int64_t jail_memory_bytes_max = 0;
  int64_t buffer_bytes_max = 0;
  // Of a device's memory: what one task may hold with all its draws. See LargestTaskBytes().
  int64_t device_bytes_max = std::numeric_limits<int64_t>::max();
  // Of the host's memory: what all tasks may hold whose draws have no room on the device.
  int64_t host_draw_bytes_max = 0;
  // Wall time, generous: the machine may be busy. A loop ends by its CPU time. Of one answer of the task's code;
  // and of all answers in one step, other inputs included, where starts of processes are not counted and the last
  // call of a baseline has its own.
  absl::Duration answer_time_max = absl::Seconds(30);
  absl::Duration step_time_max = absl::Seconds(120);
};

// Answers of a Python candidate lie in two places that change by turns: both must have been there once before a
// call is timed.
inline constexpr int kWarmUpDraws = 2;
// Rounds of a process that is timed, at most. Draws on the host are gigabytes each: of one round fewer are needed.
constexpr int NumRounds(KeptIn kept_in) { return kept_in == KeptIn::kHost ? 1 : kRoundsMax; }
// No timed call sees an input twice: for the warm-up, those of the rounds, and one to be sampled.
constexpr int TimingDraws(int num_batched_calls, int num_rounds = kRoundsMax) {
  return kWarmUpDraws + num_rounds * DrawsOfRound(num_batched_calls) + 1;
}
// Of these: the second call of the warm-up and more than half of the rounds, so that the speed-up of a candidate
// that knows all others is that of the rounds of which it knows nothing.
constexpr int FreshDrawsWanted(int num_batched_calls, int num_rounds = kRoundsMax) {
  return kWarmUpDraws - 1 + (num_rounds / 2 + 1) * DrawsOfRound(num_batched_calls);
}

// Of so much memory of a GPU what the largest task may hold: the rest is for its oracle's arithmetic, which may be that
// of float64, for the reference and for a candidate.
constexpr int64_t LargestTaskBytes(int64_t free_bytes) { return free_bytes / 8 * 5; }

// Draws that no jail of another judgement has had.
using FreshDraws = std::vector<std::unique_ptr<Draw>>;

// A status that says so, with the reason escaped: INVALID_ARGUMENT.
absl::Status TaskAtFault(std::string_view reason);

// Made in steps by threads that make tasks, one at a time: Examine() gives what verification needs, Complete()
// adds what timing_draws() keep and starts the reference, which nobody may touch before it returns. Complete(),
// MakeFresh() and CloseOracle() run while the task is judged. All else is for the judge's thread once Examine() has
// returned. Each of these but the last is a step. INVALID_ARGUMENT from any: the task is at fault.
class PreparedTask {
 public:
  // `seed` keys the stream of draw seeds; secret. `other_inputs` is an index into what the task's
  // get_other_inputs() returns: such a task is for verification only.
  PreparedTask(TaskSource source, uint64_t seed, TaskLimits limits, Zygote* parent, int num_threads,
               PlaceTask place, std::optional<int> other_inputs = std::nullopt);

  // CANCELLED: its draws would lie on the host, which it may not use; are_draws_on_host(), and BytesIn() says how much,
  // without what those on other inputs may need there.
  absl::Status Examine();
  absl::Status Complete();
  // Whether it may have draws on the host, where many tasks share what there is. True until it is said.
  void set_may_use_host(bool may) { may_use_host_ = may; }
  // Of the task's own distribution.
  absl::StatusOr<FreshDraws> MakeFresh(size_t num_draws);
  // Ends the oracle, whose memory is as large as all draws together; MakeFresh() starts another.
  void CloseOracle();
  // For any thread that has the device's turn alone: something was left to do there. Oracle and reference are killed,
  // and the next oracle has the device alone, so that what it does shows.
  void EndProcesses();
  // Gives one judgement more draws of its own, num_fresh_draws() in all, until Forget() gives them back: Draw::shown
  // says which a jail had. The first of them is in verification_draws(). All are in timing_draws() once there are so
  // many, for which the task must be complete; nothing is timed without.
  void Renew(FreshDraws fresh);
  FreshDraws Forget();
  size_t num_own_draws() const { return fresh_.size(); }
  // Of an examined task: of one judgement, and those that one turn of the device gives.
  size_t num_fresh_draws() const {
    return static_cast<size_t>(FreshDrawsWanted(num_batched_calls(), NumRounds(kept_in_)));
  }
  size_t num_draws_of_turn() const { return static_cast<size_t>(num_batched_calls()); }

  // Bytes of the device's memory that this use needs in all; or of the host's, 0 unless draws lie there for which the
  // device has no room.
  int64_t BytesIn(KeptIn where, TaskUse use) const;
  // For there is no room for them on the device. Of an examined task.
  bool are_draws_on_host() const { return kept_in_ == KeptIn::kHost; }
  // Whether others than its own draws keep so much of the device's memory that who lacked some on this task may have
  // found it without them: else the task alone needs more than there is. Of an examined task for any thread.
  bool IsCrowded() const {
    return on_device_->IsCrowded(OwnDeviceBytes() + (owner_ == nullptr ? 0 : owner_->OwnDeviceBytes()));
  }

  const TaskLayout& layout() const { return layout_; }
  const nlohmann::json& init_inputs() const { return init_inputs_; }
  // A jail of a candidate sees a draw that counts at most once: what the two lists share warms up. Of timing, fresh
  // draws follow the first.
  const std::vector<const Draw*>& verification_draws() const { return verification_draws_; }
  const std::vector<const Draw*>& timing_draws() const { return timing_draws_; }
  // Those of verification whose parameters are the model's own: for candidates that take no others. At least
  // three.
  const std::vector<const Draw*>& construction_draws() const { return construction_draws_; }
  // The same task on inputs of other shapes or strides, where it has some; nothing more than examined.
  const std::vector<std::unique_ptr<PreparedTask>>& on_other_inputs() const { return on_other_inputs_; }
  // Of the random numbers that the model's constructor takes; secret like the draws.
  int64_t construction_seed() const { return construction_seed_; }
  // Of a process in which libraries compute for the task, ChildRights::launch_queues: those of recurrent layers and of
  // linear algebra have streams of their own.
  int num_launch_queues() const;
  // The reference's text; stays the task's.
  int source_fd() const { return source_fd_.get(); }
  // Made by `place`.
  TaskOnDevice& on_device() { return *on_device_; }
  // Returns whether it has parameters that take other values.
  bool has_parameters() const {
    return std::any_of(layout_.parameters.begin(), layout_.parameters.end(),
                       [](const TensorSpec& spec) { return !spec.constant; });
  }

 private:
  int num_batched_calls() const { return on_device_->NumBatchedCalls(layout_); }
  void BeginStep() { step_deadline_ = absl::Now() + limits_.step_time_max; }
  // Of an answer that is asked for now.
  absl::Time AnswerDeadline() const {
    return std::min(absl::Now() + limits_.answer_time_max, step_deadline_);
  }
  // What the step waits for the device is no part of its time.
  absl::StatusOr<std::unique_ptr<DeviceTurn::Held>> TakeTurn();
  // What comes of `work`, alone where it failed beside others: for other outcomes than that none is the task's fault.
  // RESOURCE_EXHAUSTED: memory was wanting that others keep.
  absl::Status SeeAloneIfItFails(absl::FunctionRef<absl::Status()> work);
  // Answers of the oracle. For whoever has the turn. Alone the last has left nothing to do on the device: a task harms
  // its own grades alone. Beside others nobody can tell, and whoever is alone next looks. Without answers the oracle is
  // gone, if it could compute there, and `ending` says how it ended; alone it is gone, too, where it lacked memory.
  // RESOURCE_EXHAUSTED: others keep the device busy, or keep memory that it lacked, or memory was scarce beside them.
  absl::StatusOr<std::vector<Packet>> AskOracle(const std::vector<nlohmann::json>& requests,
                                                const std::vector<int>& descriptors,
                                                Ending* ending = nullptr);
  absl::Status ExamineInStep();
  // Bytes of the device's memory that its draws have now, those on other inputs too, whoever holds them; where they lie
  // on the host, what its processes and their tensors may have.
  int64_t OwnDeviceBytes() const;
  absl::StatusOr<std::unique_ptr<ChildProcess>> StartOracle();
  // Starts it, and opens its window in the same turn. `layout`, where it is not null, is what its answer says.
  absl::StatusOr<Packet> LoadOracle(TaskLayout* layout);
  absl::Status OpenWindow();  // for whoever has the turn
  absl::Status ExamineOnOtherInputs(int num_other_inputs);
  // INVALID_ARGUMENT where it would hold more memory than the limits have; before draws are made, too.
  absl::Status CheckBytes() const;
  // In one turn of the device, as many as the window has slots at most. Null where the reference does not survive a
  // style or parameters that are not its own.
  absl::StatusOr<FreshDraws> MakeDraws(const std::vector<DrawRequest>& wanted);
  // Of an answer of the oracle and what lies in a slot.
  absl::StatusOr<std::unique_ptr<Draw>> TakeDraw(const DrawRequest& wanted, const Packet& answer, int slot);
  // As many as are wanted, in as few turns as the window has slots for; where the reference does not survive one, a
  // tamer one: never null.
  absl::StatusOr<FreshDraws> MakeUsableDraws(const std::vector<DrawRequest>& wanted);
  // Adds draws of the task's own distribution until there are so many.
  absl::Status FillUp(size_t num_draws, std::vector<std::unique_ptr<Draw>>* draws);
  // Where there is none, or it is worn, starts one.
  absl::Status RenewOracle();
  int64_t NextSeed();
  // Of parameters that are not the model's own; 0 without parameters.
  int64_t NextParameterSeed() { return has_parameters() ? NextSeed() | 1 : 0; }

  TaskSource source_;
  uint64_t seed_;
  TaskLimits limits_;
  Zygote* parent_;
  int num_threads_;
  PlaceTask place_;
  std::optional<int> other_inputs_;
  PreparedTask* owner_ = nullptr;  // on other inputs: the task that they are of
  absl::Time step_deadline_;
  uint64_t num_seeds_used_ = 0;
  int64_t construction_seed_ = 0;
  std::unique_ptr<ChildProcess> oracle_;  // where the device is one for all, changed by whoever has its turn
  int started_cpu_seconds_max_ = 0;       // what the last one that was started may use
  // Where the oracle lays draws out, each in a slot, to be copied before the next one there.
  std::unique_ptr<TensorMemory> input_window_;
  std::unique_ptr<TensorMemory> expected_window_;
  TaskLayout layout_;
  KeptIn kept_in_ = KeptIn::kDevice;  // its draws: on the host where the device has no room for them
  const std::shared_ptr<const void> counted_ = std::make_shared<char>();  // owned by each draw, too
  nlohmann::json init_inputs_ = nlohmann::json::array();
  UniqueFd source_fd_;
  std::vector<std::unique_ptr<Draw>> verification_pool_;
  std::vector<std::unique_ptr<Draw>> timing_pool_;
  FreshDraws fresh_;
  std::vector<const Draw*> verification_draws_;
  std::vector<const Draw*> timing_draws_;
  std::vector<const Draw*> construction_draws_;
  std::vector<std::unique_ptr<PreparedTask>> on_other_inputs_;
  absl::Mutex in_making_mutex_;
  // Of those on other inputs the one that is being examined, whose oracle runs.
  PreparedTask* in_making_ ABSL_GUARDED_BY(in_making_mutex_) = nullptr;
  std::unique_ptr<TaskOnDevice> on_device_;
  std::atomic<bool> oracle_ended_ = false;  // by EndProcesses()
  bool says_invalid_ = false;               // the task, in good order, since the step began
  bool has_made_room_ = false;  // others that kept memory which its oracle lacked have ended, in this step
  bool may_use_host_ = true;
  TaskTurns turns_;  // begun anew with each oracle
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_PREPARED_TASK_H_
