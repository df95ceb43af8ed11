// First runs of Python programs: which extensions they want built.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_RECORDER_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "reward_service/cuda/driver.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/referee/process/child_process.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/task/task_pool.h"
#include "reward_service/referee/tensors/tensor_store.h"

namespace warpsmith {

// Of what a program wants built, sealed.
struct RecordedList {
  UniqueFd list;
  bool own_kernels = false;  // it was asked for Triton kernels, where those that it can have made are its own
};

// Its list alone.
absl::StatusOr<UniqueFd> ListOf(absl::StatusOr<RecordedList> recorded);

// Thread-safe: each recording has a jail of its own, and none is timed. What it is given outlives it.
class Recorder {
 public:
  struct Options {
    int64_t jail_memory_bytes_max = 0;
    int num_threads = 1;  // that a program should use
    // On which programs run, of which they are told where they record without it.
    std::optional<cuda::GpuFacts> gpu;
  };

  // `zygote` is of the Python kind.
  Recorder(const Options& options, TaskPool* pool, Zygote* zygote, TensorStore* store)
      : options_(options), pool_(pool), zygote_(zygote), store_(store) {}

  // The list of load_inline calls and Triton kernels of the program in `program_fd`. On a GPU it runs without one
  // first: many programs need no more than to know of it, and a context takes longer than they do. One that fails
  // there, asks for nothing, or asks Torch more about the GPU than can be told, has one in its turn: beside oracles and
  // other programs, of which some may have the memory or the time that it wants, so one that fails there is alone once
  // more. INVALID_ARGUMENT: the program is at fault. FAILED_PRECONDITION: the task is. DEADLINE_EXCEEDED: neither,
  // there was too little time.
  // Where it names Triton, and programs here have it, the program runs where it can read nothing that has kernels, nor
  // what makes them for others. One that fails there for want of files, and names load_inline too, runs once more as
  // any other, without Triton.
  absl::StatusOr<RecordedList> Record(const TaskSource& task, int program_fd, absl::Time deadline) const;

 private:
  // The list, and whether it would be the same with a GPU, by the program's own word.
  struct Recording {
    UniqueFd list;
    bool is_complete = false;
  };

  // The last: alone, and without processes that wait there and keep memory.
  enum class Place { kHost, kGpuBesideOthers, kGpuAlone, kGpuEmptied };

  // What is recorded of whom.
  struct Subject {
    const PreparedTask& task;
    int program_fd;
    bool own_kernels;  // those of Triton, too
    absl::Time deadline;
  };

  absl::StatusOr<RecordedList> RecordOf(const PreparedTask& task, int program_fd, absl::Time deadline) const;
  absl::StatusOr<Recording> RecordAnywhere(const Subject& subject) const;
  absl::StatusOr<Recording> RecordOnGpu(const Subject& subject) const;
  absl::StatusOr<Recording> RecordOn(Place place, const Subject& subject) const;
  absl::StatusOr<std::unique_ptr<ChildProcess>> Start(bool gpu, const Subject& subject) const;

  const Options options_;
  TaskPool* const pool_;
  Zygote* const zygote_;
  TensorStore* const store_;
  mutable absl::Mutex mutex_;
  mutable int num_on_gpu_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_RECORDER_H_
