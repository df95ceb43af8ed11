#include "trainer/workers/request_split.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace warpsmith {

RequestSplit::RequestSplit(int num_tasks, int tasks_max) : tasks_max_(tasks_max), places_(num_tasks) {
  WS_CHECK(tasks_max >= 1) << tasks_max;
}

std::vector<std::vector<RequestPart>> RequestSplit::Share(const std::vector<int>& wanted,
                                                          const std::vector<int>& workers) {
  std::vector<int> num_shared(workers.size());
  std::vector<int> others;
  for (const int task : wanted) {
    const auto found = std::find(workers.begin(), workers.end(), places_[task].worker);
    if (found == workers.end()) {
      others.push_back(task);
    } else {
      ++num_shared[found - workers.begin()];
    }
  }
  for (const int task : others) {
    const auto fewest = std::min_element(num_shared.begin(), num_shared.end());
    ++*fewest;
    Give(task, workers[fewest - num_shared.begin()]);
  }
  std::vector<std::vector<RequestPart>> shares;
  for (const int worker : workers) {
    std::map<int, std::vector<int>> parts;
    for (const int task : wanted) {
      if (places_[task].worker == worker) parts[places_[task].part].push_back(task);
    }
    std::vector<RequestPart>& share = shares.emplace_back();
    for (auto& [number, tasks] : parts) share.push_back({.number = number, .tasks = std::move(tasks)});
  }
  return shares;
}

void RequestSplit::Give(int task, int worker) {
  places_[task] = {.worker = worker, .part = num_given_[worker] / tasks_max_};
  ++num_given_[worker];
}

}  // namespace warpsmith
