#include "reward_service/referee/candidate_jails.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/task/room_on_device.h"

namespace warpsmith {
namespace {

// To open a GPU beside others who do takes a second at most.
constexpr absl::Duration kSpareTimeMax = absl::Seconds(2);
constexpr int kLaunchQueuesOfStreams = 4;
// Parameters add memory in steps of this part of a candidate's own. What is less than a step comes out of its own.
constexpr int kMemorySteps = 4;

}  // namespace

absl::StatusOr<StartedJail> CandidateJails::Start(PreparedTask& task, const Jail* baseline, int num_threads) {
  // A GPU can wait for a value in memory. So whoever is timed has inputs of its own as far as there is memory: what the
  // reference is given would set off a candidate's work, on the reference's clock or on nobody's.
  return StartWith(task, num_threads, [&](LaneTask& kept) -> absl::StatusOr<Buffers> {
    const bool is_timed = baseline != nullptr || kept.store().HasPlenty();
    if (is_timed && kept.store().on_gpu()) {
      absl::StatusOr<Buffers> own = kept.OwnBuffers(task.layout(), request_.kind);
      if (!absl::IsResourceExhausted(own.status())) return own;
    }
    return kept.BorrowBuffers(task.layout(), request_.kind, baseline);
  });
}

absl::StatusOr<StartedJail> CandidateJails::StartAhead(PreparedTask& task, int num_threads) {
  return StartWith(task, num_threads,
                   [&](LaneTask& kept) { return kept.OwnBuffers(task.layout(), request_.kind); });
}

absl::Duration CandidateJails::ConstructionTime(const PreparedTask& task) const {
  return std::min(task.layout().construction, absl::Seconds(request_.limits.lane_seconds_max));
}

JudgeLimits CandidateJails::LimitsFor(const PreparedTask& task) const {
  JudgeLimits limits = request_.limits;
  const double seconds = absl::ToDoubleSeconds(ConstructionTime(task));
  limits.cpu_seconds_max += std::floor(seconds * options_.lane->num_threads());
  return limits;
}

// A spare process is of use to who has the same rights. So whole seconds are added, and memory in steps: for most tasks
// none.
ChildRights CandidateJails::RightsFor(PreparedTask& task) const {
  const int64_t step_bytes = options_.memory_bytes_max / kMemorySteps;
  const int64_t num_steps = task.layout().parameter_bytes() / step_bytes;
  return {.role = zygote::Fork::kPython,
          .memory_bytes_max = options_.memory_bytes_max + num_steps * step_bytes,
          .cpu_seconds_max = std::max(1, static_cast<int>(LimitsFor(task).cpu_seconds_max)),
          .num_threads = options_.lane->num_threads(),
          .sealed = IsSealed(options_.room),
          .copies = MayCopy(task),
          .gpu = LaneTask::Of(task).store().on_gpu(),
          .launch_queues = NumLaunchQueues(task)};
}

// A kernel that copies on a GPU is withheld with the others there.
bool CandidateJails::MayCopy(PreparedTask& task) const {
  return request_.kind == CandidateKind::kKernelBenchPython && IsSealed(options_.room) &&
         !task.layout().moves_data && !LaneTask::Of(task).store().on_gpu();
}

// With libraries as many as the reference has, whatever its text says: theirs would overlap more than the reference's.
int CandidateJails::NumLaunchQueues(const PreparedTask& task) const {
  if (options_.room != Room::kSealed || request_.with_blas) return task.num_launch_queues();
  return request_.with_streams ? kLaunchQueuesOfStreams : 1;
}

void CandidateJails::AwaitSpare(PreparedTask& task) {
  options_.zygote->AwaitSpare(RightsFor(task), std::min(options_.deadline, absl::Now() + kSpareTimeMax));
}

absl::StatusOr<StartedJail> CandidateJails::StartWith(
    PreparedTask& task, int num_threads, absl::FunctionRef<absl::StatusOr<Buffers>(LaneTask&)> make_buffers) {
  DeviceTurn* const turn = LaneTask::Of(task).store().turn();
  const bool beside_others = turn != nullptr && turn->is_shared();
  const ChildRights rights = RightsFor(task);
  // A process that opens a GPU must not do so beside one that is timed there.
  const auto spares = turn != nullptr && !beside_others ? Zygote::Spares::kUsedUp : Zygote::Spares::kRefilled;
  // Few have streams, and spares for them would take the place of others'.
  absl::StatusOr<std::unique_ptr<ChildProcess>> process =
      request_.with_streams ? options_.zygote->Fork(rights) : options_.zygote->ForkWithSpare(rights, spares);
  RoomOnDevice room_for_buffers(&LaneTask::Of(task), options_.deadline);
  absl::StatusOr<Buffers> buffers = absl::UnknownError("not made");
  do buffers = make_buffers(LaneTask::Of(task));
  while (!buffers.ok() && room_for_buffers.MayBeThere(buffers.status()));
  RETURN_IF_ERROR(buffers.status());
  absl::Duration waited = room_for_buffers.waited();
  absl::Status hello = process.ok() ? (*process)->AwaitHello(options_.deadline) : process.status();
  if (absl::IsInternal(hello) || absl::IsUnavailable(hello) || absl::IsResourceExhausted(hello)) {
    // A spare has entered its jail beside others, who may have had all memory of the GPU, or of the host. The zygote
    // also tells here that it could not fork an earlier one.
    LogWarning(absl::StrCat("another process in the place of a spare: ", hello.message()));
    RoomOnDevice room(&LaneTask::Of(task), options_.deadline);
    do {
      process = options_.zygote->ForkWithoutSpares(rights);
      hello = process.ok() ? (*process)->AwaitHello(options_.deadline) : process.status();
    } while (!hello.ok() && room.MayBeThere(hello));
    waited += room.waited();
  }
  RETURN_IF_ERROR(hello);
  auto jail =
      std::make_unique<Jail>(*std::move(process), *std::move(buffers), task.layout(), LimitsFor(task));
  Program program = MakeProgram(task, num_threads);
  const absl::Time since = absl::Now();
  const absl::Duration of_reference = ConstructionTime(task);
  if (beside_others) program.deadline = since + absl::Seconds(kBesideOthersSecondsMax) + of_reference;
  // The lane is of whoever is timed.
  ASSIGN_OR_RETURN(std::optional<Fault> fault, jail->Begin(program, beside_others ? nullptr : options_.lane));
  const auto return_buffers = [&kept = LaneTask::Of(task)](Buffers used) {
    kept.ReturnBuffers(std::move(used));
  };
  return StartedJail{std::make_unique<CheckedJail>(std::move(jail), request_.kind, task.layout(),
                                                   options_.lane, return_buffers, measurement_, since),
                     std::move(fault), waited, std::min(absl::Now() - since, of_reference)};
}

Program CandidateJails::MakeProgram(const PreparedTask& task, int num_threads) const {
  Program program;
  program.kind = request_.kind;
  program.library_fd = request_.library_fd;
  program.source_fd = source_fd_;
  program.extension_fds = request_.extension_fds;
  if (options_.room == Room::kEmptied && request_.kind == CandidateKind::kNative) {
    program.library_fd = options_.emptied->front().get();
  } else if (options_.room == Room::kEmptied) {
    program.extension_fds.clear();
    for (const UniqueFd& library : *options_.emptied) program.extension_fds.push_back(library.get());
  }
  program.init_inputs = task.init_inputs();
  if (request_.kind == CandidateKind::kKernelBenchPython)
    program.construction = task.construction_draws().front();
  program.construction_seed = task.construction_seed();
  program.num_threads = num_threads;
  program.withhold = IsSealed(options_.room);
  return program;
}

bool AllKeptJails::Kill() {
  absl::MutexLock lock(&mutex_);
  bool has_killed = false;
  for (KeptJails* const kept : members_) has_killed |= kept->Kill();
  return has_killed;
}

KeptJails::KeptJails(AllKeptJails* all) : all_(all) {
  absl::MutexLock lock(&all_->mutex_);
  all_->members_.insert(this);
}

KeptJails::~KeptJails() {
  absl::MutexLock lock(&all_->mutex_);
  all_->members_.erase(this);
}

void KeptJails::AddWarm(std::unique_ptr<CheckedJail> jail) {
  absl::MutexLock lock(&mutex_);
  warm_.push_back(std::move(jail));
}

void KeptJails::AddVerified(std::unique_ptr<CheckedJail> jail) {
  absl::MutexLock lock(&mutex_);
  verified_ = std::move(jail);
}

std::unique_ptr<CheckedJail> KeptJails::TakeWarm() {
  absl::MutexLock lock(&mutex_);
  const bool is_first = !std::exchange(has_asked_, true);
  if (warm_.empty()) return is_first ? nullptr : std::move(verified_);
  std::unique_ptr<CheckedJail> jail = std::move(warm_.back());
  warm_.pop_back();
  return jail;
}

void KeptJails::AddEnded(std::unique_ptr<CheckedJail> jail) {
  absl::MutexLock lock(&mutex_);
  ended_.push_back(std::move(jail));
}

bool KeptJails::empty() const {
  absl::MutexLock lock(&mutex_);
  return warm_.empty() && verified_ == nullptr && ended_.empty();
}

int KeptJails::num_warm() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(warm_.size()) + (verified_ == nullptr ? 0 : 1);
}

absl::Status KeptJails::End(absl::Time deadline) {
  std::vector<std::unique_ptr<CheckedJail>> jails;  // which end without the lock
  {
    absl::MutexLock lock(&mutex_);
    KillNow();
    jails.swap(ended_);
    num_killed_ = 0;
    has_asked_ = false;
  }
  absl::Status status;
  for (auto& jail : jails) {
    const absl::Status ended = jail->jail().process().EndBy(deadline);
    if (ended.ok()) continue;
    status.Update(ended);
    (void)jail.release();  // the referee ends
  }
  return status;
}

bool KeptJails::Kill() {
  absl::MutexLock lock(&mutex_);
  return KillNow();
}

// A killed process is not to be timed: it only has to be taken away.
bool KeptJails::KillNow() {
  if (verified_ != nullptr) ended_.push_back(std::move(verified_));
  for (auto& jail : warm_) ended_.push_back(std::move(jail));
  warm_.clear();
  const size_t num_before = std::exchange(num_killed_, ended_.size());
  for (size_t i = num_before; i < ended_.size(); ++i) ended_[i]->jail().process().Kill();
  return num_before < ended_.size();
}

}  // namespace warpsmith
