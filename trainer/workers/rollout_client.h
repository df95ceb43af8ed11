// The trainer's side of RolloutService: groups from one or several workers, weights to all of them.
#ifndef WARPSMITH_TRAINER_WORKERS_ROLLOUT_CLIENT_H_
#define WARPSMITH_TRAINER_WORKERS_ROLLOUT_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "trainer/data/group_generator.h"
#include "trainer/data/transition.h"
#include "trainer/workers/published_weights.h"
#include "trainer/workers/rollout_wait.h"
#include "trainer/workers/worker_identity.h"

namespace warpsmith {

struct RolloutClientOptions {
  std::vector<std::string> addresses;  // of the workers, at least one
  TransitionLimits limits;             // of what they may send
  RolloutWaitOptions wait;
  // Reward formula that requests will name, checked by Connect; empty: the reward service's default.
  std::string formula;
  // Of the tasks that requests will have, by the names of proto/language_names.h and proto/device_names.h; checked by
  // Connect. Empty: not checked.
  std::string language;
  std::vector<std::string> devices;
  // RunProgress::run_id. The ids of requests begin with it on their way to a worker; empty: with nothing.
  std::string run_id;
  // Of one stream of groups, which are those of a part.
  absl::Duration generate_timeout = absl::Minutes(20);
  // Rounds in which missing groups are asked for again.
  int num_attempts_max = 5;
};

// A worker that dies costs time only: its groups are asked for again, from the others or from its successor,
// who is given the present weights first; the same seeds give the same answers. One thread at a time.
class RolloutClient : public GroupGenerator {
 public:
  explicit RolloutClient(const RolloutClientOptions& options);
  ~RolloutClient() override;

  // Waits until every worker serves, for all of them together no longer than the options say. Errors: those of
  // AwaitAnyServing; INVALID_ARGUMENT names the formulas that there are, where the one of the options is none;
  // FAILED_PRECONDITION what the reward service grades, where it lacks the options' language or a device of theirs;
  // UNIMPLEMENTED an address at which a server of another kind is. Returns what they are, in the order of their
  // addresses.
  absl::StatusOr<std::vector<WorkerIdentity>> Connect();

  // Gives all workers new weights: prepares on all at once, then commits on all at once, so that none runs ahead while
  // another refuses.
  absl::Status Publish(const PublishedWeights& weights);

  // One group for each task, in the order of the tasks. A worker's share of more samples than kRequestSamplesMax is
  // asked for in parts, one after the other; no group depends on the split. A group with UNSCORABLE answers is asked
  // for once more. Errors: those of the last attempt when groups are still missing, and at once what asking again
  // cannot mend, or when no worker comes back in time while groups are missing; CANCELLED when `wait.stop` is set and
  // no worker serves or has room. A worker without room, shared with another trainer, say, is asked again as often as
  // it says, in each attempt for as long as `wait` allows.
  absl::StatusOr<std::vector<TransitionGroup>> Generate(const GenerateRequest& request) override;

 private:
  struct Worker;
  class Collection;

  absl::Status CallAll(const std::function<absl::Status(Worker& worker)>& call);
  absl::Status GiveWeights(Worker& worker);
  absl::StatusOr<std::vector<Worker*>> UsableWorkers();
  absl::StatusOr<Worker*> RestoreOne();

  const RolloutClientOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<PublishedWeights> weights_;  // the last published
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_ROLLOUT_CLIENT_H_
