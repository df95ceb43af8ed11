#include "reward_service/grading/waiting/lane_policy.h"

#include <algorithm>
#include <limits>

#include "absl/functional/function_ref.h"
#include "core/base/check.h"

namespace warpsmith {
namespace {

std::string_view TenantInTurn(const std::vector<WaitingWork>& waiting, const RecentWork& recent,
                              const TenantClock& clock, const LanePolicyOptions& options) {
  const auto least = std::min_element(waiting.begin(), waiting.end(), [&](const auto& a, const auto& b) {
    return clock.SecondsOf(a.tenant) < clock.SecondsOf(b.tenant);
  });
  const double ahead_max = clock.SecondsOf(least->tenant) + absl::ToDoubleSeconds(options.tenant_turn);
  const bool recent_waits = std::any_of(
      waiting.begin(), waiting.end(), [&](const WaitingWork& work) { return work.tenant == recent.tenant; });
  return recent_waits && clock.SecondsOf(recent.tenant) < ahead_max ? recent.tenant : least->tenant;
}

int PriorityOf(const WaitingWork& work, const LanePolicyOptions& options) {
  return work.waited >= options.low_priority_wait_max ? std::numeric_limits<int>::max() : work.priority;
}

// Indices of the work that may go next.
std::vector<size_t> Eligible(const std::vector<WaitingWork>& waiting, std::string_view tenant,
                             const LanePolicyOptions& options) {
  std::vector<size_t> eligible;
  int highest = std::numeric_limits<int>::min();
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].tenant != tenant) continue;
    const int priority = PriorityOf(waiting[i], options);
    if (priority > highest) eligible.clear();
    highest = std::max(highest, priority);
    if (priority == highest) eligible.push_back(i);
  }
  return eligible;
}

// Drops all others where there are some of these.
void Prefer(absl::FunctionRef<bool(size_t)> is_preferred, std::vector<size_t>* eligible) {
  const auto others = std::stable_partition(eligible->begin(), eligible->end(), is_preferred);
  if (others != eligible->begin()) eligible->erase(others, eligible->end());
}

}  // namespace

void TenantClock::Enter(const std::string& tenant, const std::vector<std::string_view>& busy) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string_view other : busy) least = std::min(least, SecondsOf(other));
  double& seconds = seconds_[tenant];
  if (!busy.empty()) seconds = std::max(seconds, least);
}

void TenantClock::Charge(const std::string& tenant, double share, absl::Duration work) {
  seconds_[tenant] += absl::ToDoubleSeconds(work) / share;
}

double TenantClock::SecondsOf(std::string_view tenant) const {
  const auto found = seconds_.find(tenant);
  return found == seconds_.end() ? 0.0 : found->second;
}

std::optional<size_t> PickNext(const std::vector<WaitingWork>& waiting, const RecentWork& recent,
                               const TenantClock& clock, const LanePolicyOptions& options,
                               absl::Duration left_max) {
  WS_CHECK(!waiting.empty());
  std::vector<size_t> eligible = Eligible(waiting, TenantInTurn(waiting, recent, clock, options), options);
  const auto is_elsewhere = [&](size_t index) { return waiting[index].task_place == TaskPlace::kElsewhere; };
  Prefer([&](size_t index) { return !is_elsewhere(index); }, &eligible);
  const auto is_left = [&](size_t index) { return is_elsewhere(index) && waiting[index].waited < left_max; };
  if (std::all_of(eligible.begin(), eligible.end(), is_left)) return std::nullopt;
  Prefer([&](size_t index) { return !waiting[index].task_is_judged; }, &eligible);
  Prefer([&](size_t index) { return !waiting[index].came_late; }, &eligible);
  Prefer([&](size_t index) { return waiting[index].task_place == TaskPlace::kHere; }, &eligible);
  Prefer([&](size_t index) { return waiting[index].task_key == recent.task_key; }, &eligible);
  return eligible.front();
}

}  // namespace warpsmith
