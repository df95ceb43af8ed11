#include "trainer/workers/rollout_client.h"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/call_failure.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "proto/device_names.h"
#include "proto/language_names.h"
#include "proto/request_limits.h"
#include "trainer/update/group_statistics.h"
#include "trainer/workers/request_split.h"
#include "trainer/workers/wire.h"
#include "trainer/workers/worker_calls.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// Whether another attempt, perhaps with another worker, may succeed. FAILED_PRECONDITION is what a restarted
// worker says that lacks the present weights.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsCancelled(status) || absl::IsAborted(status) ||
         absl::IsResourceExhausted(status);
}

// Whether another grading may tell more. Malformed answers would be the same again.
bool HasUnscorable(const TransitionGroup& group) {
  for (const Transition& transition : group.transitions) {
    if (transition.malformed.empty() && transition.grade.verdict == Verdict::kUnscorable) return true;
  }
  return false;
}

std::string FirstFault(const TransitionGroup& group) {
  for (const Transition& transition : group.transitions) {
    if (!transition.malformed.empty()) return transition.malformed;
  }
  return "";
}

// CANCELLED is said of this process only, when it was asked to stop: a worker that cancels a call is ending.
absl::Status At(const std::string& address, const absl::Status& status) {
  const absl::StatusCode code = absl::IsCancelled(status) ? absl::StatusCode::kUnavailable : status.code();
  return absl::Status(code, absl::StrCat("rollout worker ", address, ": ", status.message()));
}

}  // namespace

struct RolloutClient::Worker {
  int index = 0;  // among the options' addresses
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::RolloutService::Stub> stub;
  bool lost = false;  // failed in the last round and not yet restored
};

// The groups of one Generate call as they arrive, from several threads.
class RolloutClient::Collection {
 public:
  Collection(const GenerateRequest& request, const std::string& run_id, const TransitionLimits& limits)
      : request_(request), run_id_(run_id), limits_(limits), places_(request.tasks.size()) {}

  // Indices of tasks to ask for: those without a group, and once more those with UNSCORABLE answers.
  std::vector<int> Wanted() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::vector<int> wanted;
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      const bool again = place.group.has_value() && !place.asked_again && HasUnscorable(*place.group);
      if (place.group.has_value() && !again) continue;
      place.asked_again = again;
      wanted.push_back(static_cast<int>(i));
    }
    return wanted;
  }

  // Streams the groups of `part` from `worker` until the end or an error. A part keeps its id: the worker
  // recognises what it has decoded and graded for it.
  absl::Status Stream(Worker& worker, const RequestPart& part, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const std::vector<int>& indices = part.tasks;
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    v1::GenerateGroupsRequest wire = RequestToWire(request_, indices);
    if (!run_id_.empty()) wire.set_request_id(absl::StrCat(run_id_, "-", request_.id));
    if (part.number > 0) wire.set_request_id(absl::StrCat(wire.request_id(), "-part-", part.number));
    const auto reader = worker.stub->GenerateGroups(&context, wire);
    Progress progress{.is_there = std::vector<bool>(indices.size())};
    absl::Status breach;
    for (v1::GenerateGroupsResponse response; breach.ok() && reader->Read(&response);) {
      breach = Take(response.group(), worker.address, indices, progress);
      if (!breach.ok()) context.TryCancel();
    }
    const absl::Status finished = FromGrpcStatus(reader->Finish());
    RETURN_IF_ERROR(breach);
    RETURN_IF_ERROR(finished);
    return CheckEnd(progress, indices.size());
  }

  // As Stream, and while the worker has no room asks it again, as often as it says. Back-pressure: it had none
  // for as long as `wait` says, or this process is to stop.
  absl::Status StreamOnceThereIsRoom(Worker& worker, const RequestPart& part, absl::Duration timeout,
                                     const RolloutWaitOptions& wait) {
    const absl::Time began = absl::Now();
    absl::Time line_due = began;
    while (true) {
      const absl::Status status = Stream(worker, part, timeout);
      const absl::Time now = absl::Now();
      const absl::Duration left = began + wait.timeout - now;
      if (!IsBackPressure(status) || left <= absl::ZeroDuration() || IsStopped(wait)) return status;
      if (now >= line_due) {
        wait.lines.say(absl::StrCat("rollout worker ", worker.address, " has no room: ", status.message(),
                                    "; waiting for at most ",
                                    absl::FormatDuration(absl::Ceil(left, absl::Seconds(1)))));
        line_due = now + wait.lines.interval;
      }
      PauseUnlessStopped(*worker.channel, std::min(*GetRetryDelay(status), left), wait);
    }
  }

  // All of `parts`, one after the other: together they may be more than the worker takes at a time. Errors: the
  // first, with which it ends.
  absl::Status StreamParts(Worker& worker, const std::vector<RequestPart>& parts, absl::Duration timeout,
                           const RolloutWaitOptions& wait) {
    for (const RequestPart& part : parts) {
      RETURN_IF_ERROR(StreamOnceThereIsRoom(worker, part, timeout, wait));
    }
    return absl::OkStatus();
  }

  bool complete() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::all_of(places_.begin(), places_.end(),
                       [](const Place& place) { return place.group.has_value(); });
  }

  // To be called once it is complete.
  std::vector<TransitionGroup> Finish() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::vector<TransitionGroup> groups;
    for (Place& place : places_) groups.push_back(*std::move(place.group));
    return groups;
  }

 private:
  // Of one task.
  struct Place {
    std::optional<TransitionGroup> group;
    bool asked_again = false;  // for the sake of UNSCORABLE answers
  };
  // Of one stream.
  struct Progress {
    std::vector<bool> is_there;  // by task_index
    size_t num_groups = 0;
    int num_transitions = 0;
    int num_malformed = 0;
    std::string first_fault;
  };

  absl::Status Take(const v1::TransitionGroup& wire, const std::string& address,
                    const std::vector<int>& indices, Progress& progress) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (wire.task_index() < 0 || wire.task_index() >= static_cast<int>(indices.size())) {
      return absl::InternalError(
          absl::StrCat("a group has task_index ", wire.task_index(), " of ", indices.size()));
    }
    const int index = indices[wire.task_index()];
    const Task& task = request_.tasks[index];
    if (progress.is_there[wire.task_index()]) {
      return absl::InternalError(absl::StrCat("the group of task \"", task.id, "\" was sent twice"));
    }
    absl::StatusOr<TransitionGroup> group = GroupFromWire(wire, task, request_, limits_);
    if (!group.ok()) {
      return absl::InternalError(absl::StrCat("task \"", task.id, "\": ", group.status().message()));
    }
    progress.is_there[wire.task_index()] = true;
    ++progress.num_groups;
    CountMalformedIn(*group, address, progress);
    absl::MutexLock lock(&mutex_);
    std::optional<TransitionGroup>& place = places_[index].group;
    const bool first = !place.has_value();
    place = *std::move(group);
    if (first) ++num_arrived_;
    if (first && request_.on_group) request_.on_group(num_arrived_, static_cast<int>(places_.size()));
    return absl::OkStatus();
  }

  // One line for a group, not one for each answer: a broken worker has many.
  void CountMalformedIn(const TransitionGroup& group, const std::string& address, Progress& progress) const {
    progress.num_transitions += static_cast<int>(group.transitions.size());
    const int count = CountMalformed(group);
    if (count == 0) return;
    progress.num_malformed += count;
    if (progress.first_fault.empty()) progress.first_fault = FirstFault(group);
    LogWarning(absl::StrCat("rollout worker ", address, " sent ", count, " malformed of ",
                            group.transitions.size(), " answers to task \"", Escape(group.task.id, 128),
                            "\" in ", request_.id, "; dropped, the first for ", FirstFault(group)));
  }

  // A worker all of whose answers are malformed has another model or another idea of the contract: the next
  // ones would be no better.
  static absl::Status CheckEnd(const Progress& progress, size_t num_wanted) {
    if (progress.num_malformed > 1 && progress.num_malformed == progress.num_transitions) {
      return absl::InternalError(
          absl::StrCat("all ", progress.num_malformed, " answers that it sent are malformed, the first for ",
                       progress.first_fault, "; start it with the trainer's configuration"));
    }
    if (progress.num_groups == num_wanted) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the stream ended after ", progress.num_groups, " of ", num_wanted, " groups"));
  }

  const GenerateRequest& request_;
  const std::string& run_id_;
  const TransitionLimits limits_;
  mutable absl::Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);  // by index of the task
  int num_arrived_ ABSL_GUARDED_BY(mutex_) = 0;        // tasks that have a group
};

RolloutClient::RolloutClient(const RolloutClientOptions& options) : options_(options) {
  WS_CHECK(!options.addresses.empty());
  WS_CHECK(options.limits.vocab_size > 0 && options.limits.positions_max > 0);
  for (const std::string& address : options.addresses) {
    auto worker = std::make_unique<Worker>();
    worker->index = static_cast<int>(workers_.size());
    worker->address = address;
    worker->channel = CreateChannel(address);
    worker->stub = v1::RolloutService::NewStub(worker->channel);
    workers_.push_back(std::move(worker));
  }
}

RolloutClient::~RolloutClient() = default;

absl::StatusOr<std::vector<WorkerIdentity>> RolloutClient::Connect() {
  const absl::Time began = absl::Now();
  std::vector<WorkerIdentity> identities;
  for (const auto& worker : workers_) {
    RETURN_IF_ERROR(AwaitAnyServing({{worker->address, worker->channel}}, options_.wait, began).status());
    grpc::ClientContext context;
    SetTimeout(&context, kCallTimeout);
    v1::GetStatusRequest request;
    request.set_formula(options_.formula);
    request.set_language(LanguageOfName(options_.language));
    for (const std::string& device : options_.devices) request.add_devices(DeviceOfName(device));
    v1::GetStatusResponse response;
    const absl::Status status = [&] {
      const WaitLines waiting(
          absl::StrCat("the rollout worker at ", worker->address, ", which asks its reward service"),
          kCallTimeout, options_.wait.lines);
      return FromGrpcStatus(worker->stub->GetStatus(&context, request, &response));
    }();
    if (absl::IsUnimplemented(status)) {
      return ExplainCallFailure(status, worker->channel,
                                {.address = worker->address,
                                 .kind = "rollout worker",
                                 .way_out = "",
                                 .other_service = "warpsmith.v1.RewardService",
                                 .other_kind = "reward service"});
    }
    if (!status.ok()) return At(worker->address, status);
    identities.push_back(IdentityFromWire(worker->address, response));
  }
  return identities;
}

absl::Status RolloutClient::Publish(const PublishedWeights& weights) {
  weights_ = weights;
  for (const auto& worker : workers_) worker->lost = false;
  RETURN_IF_ERROR(CallAll([&weights](Worker& worker) { return PrepareWeights(*worker.stub, weights); }));
  return CallAll([&weights](Worker& worker) { return CommitWeights(*worker.stub, weights); });
}

// Calls all workers that are not lost at once, each on a thread of its own. One whose failure may pass is lost: it is
// given the weights when it is needed. Otherwise the failure of the first, once all have answered.
absl::Status RolloutClient::CallAll(const std::function<absl::Status(Worker& worker)>& call) {
  std::vector<absl::Status> answers(workers_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i]->lost) continue;
    threads.emplace_back([&, i] { answers[i] = call(*workers_[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (answers[i].ok()) continue;
    workers_[i]->lost = MayPass(answers[i]);
    if (!workers_[i]->lost) return At(workers_[i]->address, answers[i]);
  }
  return absl::OkStatus();
}

absl::Status RolloutClient::GiveWeights(Worker& worker) {
  if (!weights_.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(PrepareWeights(*worker.stub, *weights_));
  return CommitWeights(*worker.stub, *weights_);
}

// Workers that are not lost; when all are, the first that comes back.
absl::StatusOr<std::vector<RolloutClient::Worker*>> RolloutClient::UsableWorkers() {
  std::vector<Worker*> usable;
  for (const auto& worker : workers_) {
    if (!worker->lost) usable.push_back(worker.get());
  }
  if (!usable.empty()) return usable;
  ASSIGN_OR_RETURN(Worker * restored, RestoreOne());
  return std::vector<Worker*>{restored};
}

// Waits for any worker and gives it the present weights. UNAVAILABLE: those that came back took none, and may
// another time.
absl::StatusOr<RolloutClient::Worker*> RolloutClient::RestoreOne() {
  const absl::Time began = absl::Now();
  std::vector<Worker*> candidates;
  for (const auto& worker : workers_) candidates.push_back(worker.get());
  absl::Status failed;
  while (!candidates.empty()) {
    std::vector<AwaitedWorker> awaited;
    for (const Worker* worker : candidates) awaited.push_back({worker->address, worker->channel});
    ASSIGN_OR_RETURN(const size_t index, AwaitAnyServing(awaited, options_.wait, began));
    Worker* const worker = candidates[index];
    const absl::Status given = GiveWeights(*worker);
    if (given.ok()) {
      LogInfo(absl::StrCat("rollout worker ", worker->address, " is back"));
      worker->lost = false;
      return worker;
    }
    failed = At(worker->address, MayPass(given) ? absl::UnavailableError(given.ToString()) : given);
    LogWarning(failed.ToString());
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return failed;
}

absl::StatusOr<std::vector<TransitionGroup>> RolloutClient::Generate(const GenerateRequest& request) {
  Collection collection(request, options_.run_id, options_.limits);
  RequestSplit split(static_cast<int>(request.tasks.size()),
                     std::max(1, kRequestSamplesMax / std::max(1, request.num_samples)));
  absl::Status last = absl::UnavailableError("no rollout worker serves");
  for (int attempt = 0; attempt < options_.num_attempts_max; ++attempt) {
    const std::vector<int> wanted = collection.Wanted();
    if (wanted.empty()) return collection.Finish();
    if (attempt > 0) LogWarning(absl::StrCat("asking again for ", wanted.size(), " groups of ", request.id));
    const absl::StatusOr<std::vector<Worker*>> usable = UsableWorkers();
    // Only for the sake of UNSCORABLE answers was it asked again.
    if (!usable.ok() && collection.complete()) break;
    if (absl::IsUnavailable(usable.status())) {
      last = usable.status();
      continue;
    }
    RETURN_IF_ERROR(usable.status());
    const std::vector<Worker*>& workers = *usable;
    std::vector<int> indices;
    for (const Worker* worker : workers) indices.push_back(worker->index);
    const std::vector<std::vector<RequestPart>> shares = split.Share(wanted, indices);

    std::vector<absl::Status> statuses(workers.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers.size(); ++i) {
      if (shares[i].empty()) continue;
      threads.emplace_back([&, i] {
        statuses[i] =
            collection.StreamParts(*workers[i], shares[i], options_.generate_timeout, options_.wait);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < workers.size(); ++i) {
      if (statuses[i].ok()) continue;
      last = At(workers[i]->address, statuses[i]);
      if (IsBackPressure(statuses[i]) && IsStopped(options_.wait)) {
        return absl::CancelledError(absl::StrCat("asked to stop while waiting for room: ", last.message(),
                                                 "; --resume goes on from the newest checkpoint"));
      }
      if (!MayPass(statuses[i])) return last;
      LogWarning(last.ToString());
      workers[i]->lost = true;
    }
  }
  if (collection.complete()) return collection.Finish();
  return last;
}

}  // namespace warpsmith
