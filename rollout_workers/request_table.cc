#include "rollout_workers/request_table.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace warpsmith {

std::shared_ptr<HeldRequest> RequestTable::Find(const std::string& request_id) {
  const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const auto& request) {
    return request->assembly.request().request_id() == request_id;
  });
  if (found == requests_.end()) return nullptr;
  requests_.splice(requests_.begin(), requests_, found);
  return requests_.front();
}

std::shared_ptr<HeldRequest> RequestTable::FindJob(int64_t job_id) const {
  const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const auto& request) {
    return request->running() && request->job_id == job_id;
  });
  return found == requests_.end() ? nullptr : *found;
}

void RequestTable::Insert(std::shared_ptr<HeldRequest> request) {
  WS_CHECK(Find(request->assembly.request().request_id()) == nullptr)
      << request->assembly.request().request_id();
  requests_.push_front(std::move(request));
  EvictIdle();
}

void RequestTable::Erase(const std::string& request_id) {
  std::erase_if(requests_,
                [&](const auto& request) { return request->assembly.request().request_id() == request_id; });
}

void RequestTable::EvictIdle() {
  int num_idle = 0;
  int64_t idle_bytes = 0;
  std::erase_if(requests_, [&](const auto& request) {
    if (request->running() || !request->readers.empty()) return false;
    idle_bytes += request->assembly.num_bytes();
    return ++num_idle > limits_.num_idle_max || idle_bytes > limits_.idle_bytes_max;
  });
}

int RequestTable::num_running() const {
  return static_cast<int>(std::count_if(requests_.begin(), requests_.end(),
                                        [](const auto& request) { return request->running(); }));
}

}  // namespace warpsmith
