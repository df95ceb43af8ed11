#include "trainer/rollout_client.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "trainer/wire.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// What the health service calls the worker's process: it can be given weights before it can serve any groups.
constexpr char kProcess[] = "";
constexpr absl::Duration kCallTimeout = absl::Minutes(2);  // of a call that transfers no groups

// Whether another attempt, perhaps with another worker, may succeed. FAILED_PRECONDITION is what a restarted
// worker says that lacks the present weights.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsCancelled(status) || absl::IsAborted(status) ||
         absl::IsResourceExhausted(status);
}

bool HasUnscorable(const TransitionGroup& group) {
  for (const Transition& transition : group.transitions) {
    if (transition.grade.verdict == Verdict::kUnscorable) return true;
  }
  return false;
}

absl::Status At(const std::string& address, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("rollout worker ", address, ": ", status.message()));
}

}  // namespace

struct RolloutClient::Worker {
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::RolloutService::Stub> stub;
  bool lost = false;  // failed in the last round and not yet restored
};

// The groups of one Generate call as they arrive, from several threads.
class RolloutClient::Collection {
 public:
  explicit Collection(const GenerateRequest& request) : request_(request), groups_(request.tasks.size()) {}

  // Indices of tasks to ask for: without a group or, when `again`, with an UNSCORABLE answer in it.
  std::vector<int> Missing(bool again) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::vector<int> missing;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].has_value() || (again && HasUnscorable(*groups_[i])))
        missing.push_back(static_cast<int>(i));
    }
    return missing;
  }

  // Streams the groups of tasks `indices` from `worker` until the end or an error.
  absl::Status Stream(Worker& worker, const std::vector<int>& indices, int attempt, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    GenerateRequest named = request_;
    named.id = absl::StrCat(request_.id, "-attempt-", attempt);
    const auto reader = worker.stub->GenerateGroups(&context, RequestToWire(named, indices));
    absl::Status malformed;
    for (v1::GenerateGroupsResponse response; malformed.ok() && reader->Read(&response);) {
      malformed = Take(response.group(), indices);
      if (!malformed.ok()) context.TryCancel();
    }
    const absl::Status finished = FromGrpcStatus(reader->Finish());
    return malformed.ok() ? finished : malformed;
  }

  std::vector<TransitionGroup> Finish() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::vector<TransitionGroup> groups;
    for (auto& group : groups_) groups.push_back(*std::move(group));
    return groups;
  }

 private:
  absl::Status Take(const v1::TransitionGroup& wire, const std::vector<int>& indices)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (wire.task_index() < 0 || wire.task_index() >= static_cast<int>(indices.size())) {
      return absl::InternalError(
          absl::StrCat("a group has task_index ", wire.task_index(), " of ", indices.size()));
    }
    ASSIGN_OR_RETURN(TransitionGroup group, GroupFromWire(wire, request_));
    absl::MutexLock lock(&mutex_);
    groups_[indices[wire.task_index()]] = std::move(group);
    return absl::OkStatus();
  }

  const GenerateRequest& request_;
  mutable absl::Mutex mutex_;
  std::vector<std::optional<TransitionGroup>> groups_ ABSL_GUARDED_BY(mutex_);
};

RolloutClient::RolloutClient(const RolloutClientOptions& options) : options_(options) {
  WS_CHECK(!options.addresses.empty());
  for (const std::string& address : options.addresses) {
    auto worker = std::make_unique<Worker>();
    worker->address = address;
    worker->channel = CreateChannel(address);
    worker->stub = v1::RolloutService::NewStub(worker->channel);
    workers_.push_back(std::move(worker));
  }
}

RolloutClient::~RolloutClient() = default;

absl::StatusOr<std::vector<WorkerIdentity>> RolloutClient::Connect() {
  std::vector<WorkerIdentity> identities;
  for (const auto& worker : workers_) {
    const absl::Status answering = WaitUntilServing(worker->channel, kProcess, options_.serving_timeout);
    if (!answering.ok()) return At(worker->address, answering);
    grpc::ClientContext context;
    SetTimeout(&context, kCallTimeout);
    v1::GetStatusResponse response;
    const absl::Status status = FromGrpcStatus(worker->stub->GetStatus(&context, {}, &response));
    if (!status.ok()) return At(worker->address, status);
    identities.push_back(
        {.layout_sha256 = response.layout_sha256(), .prompts_sha256 = response.prompts_sha256()});
  }
  return identities;
}

absl::Status RolloutClient::Publish(const PublishedWeights& weights) {
  weights_ = weights;
  v1::PrepareWeightsRequest prepare;
  *prepare.mutable_manifest() = ManifestToWire(weights);
  for (const auto& worker : workers_) {
    grpc::ClientContext context;
    SetTimeout(&context, kCallTimeout);
    v1::PrepareWeightsResponse response;
    const absl::Status status = FromGrpcStatus(worker->stub->PrepareWeights(&context, prepare, &response));
    worker->lost = !status.ok() && MayPass(status);  // given the weights when it is needed
    if (!status.ok() && !worker->lost) return At(worker->address, status);
  }
  v1::CommitWeightsRequest commit;
  commit.set_policy_version(weights.policy_version);
  for (const auto& worker : workers_) {
    if (worker->lost) continue;
    grpc::ClientContext context;
    SetTimeout(&context, kCallTimeout);
    v1::CommitWeightsResponse response;
    const absl::Status status = FromGrpcStatus(worker->stub->CommitWeights(&context, commit, &response));
    worker->lost = !status.ok() && MayPass(status);
    if (!status.ok() && !worker->lost) return At(worker->address, status);
  }
  return absl::OkStatus();
}

absl::Status RolloutClient::GiveWeights(Worker& worker) {
  RETURN_IF_ERROR(WaitUntilServing(worker.channel, kProcess, options_.serving_timeout));
  if (!weights_.has_value()) return absl::OkStatus();
  v1::PrepareWeightsRequest prepare;
  *prepare.mutable_manifest() = ManifestToWire(*weights_);
  grpc::ClientContext prepare_context;
  SetTimeout(&prepare_context, kCallTimeout);
  v1::PrepareWeightsResponse prepared;
  RETURN_IF_ERROR(FromGrpcStatus(worker.stub->PrepareWeights(&prepare_context, prepare, &prepared)));

  v1::CommitWeightsRequest commit;
  commit.set_policy_version(weights_->policy_version);
  grpc::ClientContext commit_context;
  SetTimeout(&commit_context, kCallTimeout);
  v1::CommitWeightsResponse committed;
  return FromGrpcStatus(worker.stub->CommitWeights(&commit_context, commit, &committed));
}

// Workers that are not lost; when all are, the first that comes back with the present weights.
std::vector<RolloutClient::Worker*> RolloutClient::UsableWorkers() {
  std::vector<Worker*> usable;
  for (const auto& worker : workers_) {
    if (!worker->lost) usable.push_back(worker.get());
  }
  for (size_t i = 0; usable.empty() && i < workers_.size(); ++i) {
    const absl::Status restored = GiveWeights(*workers_[i]);
    workers_[i]->lost = !restored.ok();
    if (restored.ok()) {
      LogInfo(absl::StrCat("rollout worker ", workers_[i]->address, " is back"));
      usable.push_back(workers_[i].get());
    } else {
      LogWarning(At(workers_[i]->address, restored).ToString());
    }
  }
  return usable;
}

absl::StatusOr<std::vector<TransitionGroup>> RolloutClient::Generate(const GenerateRequest& request) {
  Collection collection(request);
  absl::Status last = absl::UnavailableError("no rollout worker serves");
  for (int attempt = 0; attempt < options_.num_attempts_max; ++attempt) {
    const std::vector<int> missing = collection.Missing(/*again=*/attempt == 1);
    if (missing.empty()) return collection.Finish();
    if (attempt > 0) LogWarning(absl::StrCat("asking again for ", missing.size(), " groups of ", request.id));
    const std::vector<Worker*> workers = UsableWorkers();
    std::vector<std::vector<int>> shares(workers.size());
    for (size_t i = 0; i < missing.size() && !workers.empty(); ++i)
      shares[i % workers.size()].push_back(missing[i]);

    std::vector<absl::Status> statuses(workers.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers.size(); ++i) {
      if (shares[i].empty()) continue;
      threads.emplace_back([&, i] {
        statuses[i] = collection.Stream(*workers[i], shares[i], attempt, options_.generate_timeout);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < workers.size(); ++i) {
      if (statuses[i].ok()) continue;
      last = At(workers[i]->address, statuses[i]);
      if (!MayPass(statuses[i])) return last;
      LogWarning(last.ToString());
      workers[i]->lost = true;
    }
  }
  if (collection.Missing(/*again=*/false).empty()) return collection.Finish();
  return last;
}

}  // namespace warpsmith
