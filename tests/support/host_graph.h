// CUDA graphs of the GPU made of the host: while a thread captures, launches are recorded instead of run.
#ifndef WARPSMITH_TESTS_SUPPORT_HOST_GRAPH_H_
#define WARPSMITH_TESTS_SUPPORT_HOST_GRAPH_H_

#include <functional>
#include <utility>
#include <vector>

namespace warpsmith {

// What each launch says of its success.
using HostGraph = std::vector<std::function<bool()>>;

// What this thread captures into; null where it does not.
inline HostGraph*& CapturedGraph() {
  thread_local HostGraph* graph = nullptr;
  return graph;
}

// Whether `launch`, which returns 0 on success, was recorded. It holds its arguments by value.
template <typename Launch>
bool IsRecorded(Launch launch) {
  HostGraph* const graph = CapturedGraph();
  if (graph == nullptr) return false;
  graph->push_back([launch = std::move(launch)] { return static_cast<int>(launch()) == 0; });
  return true;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HOST_GRAPH_H_
