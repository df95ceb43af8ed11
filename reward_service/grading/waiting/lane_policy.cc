#include "reward_service/grading/waiting/lane_policy.h"

#include <algorithm>
#include <limits>

#include "absl/functional/function_ref.h"
#include "core/base/check.h"

namespace warpsmith {
namespace {

std::string_view TenantInTurn(const std::vector<WaitingWork>& waiting, const std::vector<size_t>& eligible,
                              const RecentWork& recent, const TenantClock& clock,
                              const LanePolicyOptions& options) {
  const auto seconds_of = [&](size_t index) { return clock.SecondsOf(waiting[index].tenant); };
  const size_t least = *std::min_element(eligible.begin(), eligible.end(),
                                         [&](size_t a, size_t b) { return seconds_of(a) < seconds_of(b); });
  const double ahead_max = seconds_of(least) + absl::ToDoubleSeconds(options.tenant_turn);
  const bool recent_waits = std::any_of(eligible.begin(), eligible.end(),
                                        [&](size_t index) { return waiting[index].tenant == recent.tenant; });
  return recent_waits && clock.SecondsOf(recent.tenant) < ahead_max ? recent.tenant : waiting[least].tenant;
}

int PriorityOf(const WaitingWork& work, const LanePolicyOptions& options) {
  return work.waited >= options.low_priority_wait_max ? std::numeric_limits<int>::max() : work.priority;
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
  const auto is_elsewhere = [&](size_t index) { return waiting[index].task_place == TaskPlace::kElsewhere; };
  std::vector<size_t> eligible;
  for (size_t i = 0; i < waiting.size(); ++i)
    if (!is_elsewhere(i) || waiting[i].waited >= left_max) eligible.push_back(i);
  if (eligible.empty()) return std::nullopt;
  const std::string_view tenant = TenantInTurn(waiting, eligible, recent, clock, options);
  Prefer([&](size_t index) { return waiting[index].tenant == tenant; }, &eligible);
  int highest = std::numeric_limits<int>::min();
  for (const size_t index : eligible) highest = std::max(highest, PriorityOf(waiting[index], options));
  Prefer([&](size_t index) { return PriorityOf(waiting[index], options) == highest; }, &eligible);
  Prefer([&](size_t index) { return !is_elsewhere(index); }, &eligible);
  Prefer([&](size_t index) { return !waiting[index].task_is_judged; }, &eligible);
  Prefer([&](size_t index) { return !waiting[index].came_late; }, &eligible);
  Prefer([&](size_t index) { return waiting[index].task_place == TaskPlace::kHere; }, &eligible);
  Prefer([&](size_t index) { return waiting[index].task_key == recent.task_key; }, &eligible);
  return eligible.front();
}

}  // namespace warpsmith
