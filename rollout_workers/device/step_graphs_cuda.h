// CUDA graphs of steps that repeat: one launch instead of one a kernel.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_GRAPHS_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_GRAPHS_CUDA_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <map>

#include "absl/status/status.h"
#include "core/model/handles_cuda.h"

namespace warpsmith::device {

// A graph a bucket, captured when it is used for the second time: the first loads the kernels, which a capture may not.
// So a start captures nothing, and a step that does takes some ten milliseconds more.
class StepGraphs {
 public:
  // Launches what `launch` puts on `stream`, which must be the same whenever `bucket` is. A bucket that cannot be
  // captured, for want of memory say, is told of once and launched directly from then on. `on_capture` is called once a
  // capture, after it and before anything is launched. The errors of `launch`, or INTERNAL with CUDA's message.
  absl::Status Launch(
      int bucket, cudaStream_t stream, const std::function<absl::Status()>& launch,
      const std::function<void()>& on_capture = [] {});

  // Steps of how many buckets are graphs.
  int num_captured() const;

  // Forgets all graphs: memory that they name is about to move. None may be running.
  void Clear() { entries_.clear(); }

 private:
  struct Entry {
    bool is_warm = false;
    bool is_refused = false;
    CudaGraph graph;
  };

  std::map<int, Entry> entries_;  // by bucket
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_GRAPHS_CUDA_H_
