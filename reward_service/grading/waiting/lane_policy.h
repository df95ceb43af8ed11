// Which of the waiting candidates goes next: tenants by their shares, those of one task near each other, none
// left behind.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_WAITING_LANE_POLICY_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_WAITING_LANE_POLICY_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace warpsmith {

// As one lane sees a task. kHere: it has judged candidates of it of late. kElsewhere: another lane has it ready, and
// this one has not.
enum class TaskPlace { kNowhere, kHere, kElsewhere };

struct WaitingWork {
  std::string_view task_key;
  absl::Duration waited;
  std::string_view tenant = {};
  int priority = 0;             // the greater goes first, among one tenant's
  bool task_is_judged = false;  // by another slot of the lane, which would be waited for
  TaskPlace task_place = TaskPlace::kNowhere;
  bool came_late = false;  // it came when the gate had let in what goes first
};

// What a lane, or a compile worker, did last.
struct RecentWork {
  std::string task_key;
  std::string tenant = {};
};

// Seconds of work done for each tenant, divided by its share: "virtual time" of fair queueing (Demers,
// Keshav, Shenker 1989). One that had nothing waiting enters at the least of those that have: idleness saves
// nothing up.
class TenantClock {
 public:
  // `tenant` has work, and had none; `busy` are those that have.
  void Enter(const std::string& tenant, const std::vector<std::string_view>& busy);
  void Charge(const std::string& tenant, double share, absl::Duration work);
  double SecondsOf(std::string_view tenant) const;

 private:
  std::map<std::string, double, std::less<>> seconds_;
};

struct LanePolicyOptions {
  // A tenant keeps its turn until it is so far ahead of the one served least.
  absl::Duration tenant_turn = absl::Seconds(2);
  // What waited so long counts as of the highest priority.
  absl::Duration low_priority_wait_max = absl::Seconds(60);
};

// Index of the work to do next; `waiting` is in order of arrival and not empty. Work whose task is elsewhere is left to
// that lane until it has waited for `left_max`: where there is no other there is none. Each rule chooses among what the
// one before has left, and is passed over where it would leave nothing:
//   1. of the tenant in turn: the recent one until it is `tenant_turn` ahead, else the one served least;
//   2. of the highest priority;
//   3. whose task is not ready on another lane alone;
//   4. whose task is not being judged;
//   5. that has not come late: a gate lets in all that waits, and again once all of that is done ("gated" service of
//      polling systems, Takagi, ACM Computing Surveys 20, 1988). So whatever waits has its turn, however much of
//      another task still comes;
//   6. whose task is judged here, so that few tasks are begun at a time, and each is done before it makes room;
//   7. of the recent task;
//   8. the first.
std::optional<size_t> PickNext(const std::vector<WaitingWork>& waiting, const RecentWork& recent,
                               const TenantClock& clock, const LanePolicyOptions& options,
                               absl::Duration left_max = absl::ZeroDuration());

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_WAITING_LANE_POLICY_H_
