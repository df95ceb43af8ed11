#include "rollout_workers/device/step_graphs_cuda.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"

namespace warpsmith::device {
namespace {

absl::StatusOr<CudaGraph> Capture(cudaStream_t stream, const std::function<absl::Status()>& launch) {
  RETURN_IF_ERROR(
      CudaStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "Beginning a capture"));
  const absl::Status launched = launch();
  cudaGraph_t graph = nullptr;
  // Also where the launch failed: CUDA forgets the capture's error, which the next launch would report as its own.
  const absl::Status ended = CudaStatus(cudaStreamEndCapture(stream, &graph), "Ending a capture");
  cudaGraphExec_t executable = nullptr;
  absl::Status status = launched.ok() ? ended : launched;
  if (status.ok()) status = CudaStatus(cudaGraphInstantiate(&executable, graph, 0), "Instantiating a graph");
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (status.ok()) return CudaGraph(executable);
  return status;
}

}  // namespace

int StepGraphs::num_captured() const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(),
                                        [](const auto& entry) { return entry.second.graph != nullptr; }));
}

absl::Status StepGraphs::Launch(int bucket, cudaStream_t stream, const std::function<absl::Status()>& launch,
                                const std::function<void()>& on_capture) {
  Entry& entry = entries_[bucket];
  const bool is_first = !std::exchange(entry.is_warm, true);
  if (entry.graph == nullptr && !is_first && !entry.is_refused) {
    absl::StatusOr<CudaGraph> graph = Capture(stream, launch);
    on_capture();
    entry.is_refused = !graph.ok();
    if (graph.ok()) entry.graph = *std::move(graph);
    if (!graph.ok()) {
      LogWarning(absl::StrCat("steps of ", bucket, " sequences run without a CUDA graph, slower: ",
                              std::string(graph.status().message())));
    }
  }
  if (entry.graph == nullptr) return launch();
  return CudaStatus(cudaGraphLaunch(entry.graph.get(), stream),
                    absl::StrCat("Launching the graph of ", bucket));
}

}  // namespace warpsmith::device
