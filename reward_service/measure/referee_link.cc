#include "reward_service/measure/referee_link.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/malloc_tunables.h"
#include "reward_service/jail/messages.h"

extern char** environ;

namespace warpsmith {
namespace {

constexpr int kSocketInside = 3;
constexpr absl::Duration kGrace = absl::Seconds(1);

// Our environment and the referee's own tunables.
std::vector<char*> RefereeEnvironment(std::string* tunables) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "GLIBC_TUNABLES=", 15) != 0) variables.push_back(*variable);
  }
  variables.push_back(tunables->data());
  variables.push_back(nullptr);
  return variables;
}

absl::StatusOr<pid_t> Spawn(const std::filesystem::path& program, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A copy far away: the descriptor itself may be number 3, which dup2 would leave close-on-exec.
  const UniqueFd copy(fcntl(socket, F_DUPFD_CLOEXEC, 64));
  posix_spawn_file_actions_adddup2(&actions, copy.get(), kSocketInside);
  posix_spawn_file_actions_addclosefrom_np(&actions, kSocketInside + 1);
  std::string name = program.string();
  std::string inside = absl::StrCat(kSocketInside);
  char* arguments[] = {name.data(), inside.data(), nullptr};
  pid_t pid = -1;
  // One arena, so that a task made by any thread takes what a retired one left.
  std::string tunables = absl::StrCat(kMallocTunables, ":glibc.malloc.arena_max=1");
  std::vector<char*> environment = RefereeEnvironment(&tunables);
  const int error = posix_spawn(&pid, name.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return absl::FailedPreconditionError(absl::StrCat("start ", name, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RefereeLink>> RefereeLink::Open(const std::filesystem::path& program,
                                                               const nlohmann::json& start,
                                                               absl::Time deadline, Packet* started) {
  ASSIGN_OR_RETURN(auto pair, MakePacketPair());
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(program, pair.second.get()));
  auto link = absl::WrapUnique(new RefereeLink(pid, std::move(pair.first)));
  pair.second.Reset();  // so that its end shows
  RETURN_IF_ERROR(SendPacket(link->socket_.get(), start));
  absl::StatusOr<Packet> first = ReceivePacket(link->socket_.get(), deadline);
  if (!first.ok()) {
    return absl::InternalError(absl::StrCat("the referee did not start: ", first.status().message()));
  }
  *started = *std::move(first);
  link->reader_ = std::thread([reading = link.get()] { reading->ReadAnswers(); });
  return link;
}

RefereeLink::~RefereeLink() {
  Break(absl::UnavailableError("the referee is ended"));
  if (reader_.joinable()) reader_.join();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::StatusOr<Packet> RefereeLink::Ask(nlohmann::json question, const std::vector<int>& descriptors,
                                        absl::Time deadline, Late late, bool* sent) {
  *sent = false;
  int64_t id = 0;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(status_);
    id = ++last_id_;
    asked_[id] = std::nullopt;
  }
  question[service::Judge::id.name] = id;
  question[service::Judge::timeout_seconds.name] = absl::ToDoubleSeconds(deadline - absl::Now());
  const absl::Status told = Tell(question, descriptors);
  *sent = told.ok();
  absl::MutexLock lock(&mutex_);
  std::optional<Packet>& answer = asked_[id];
  const auto decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return answer.has_value() || !status_.ok();
  };
  if (!told.ok()) BreakLocked(told);
  const bool in_time = mutex_.AwaitWithDeadline(absl::Condition(&decided), deadline + kGrace);
  std::optional<Packet> found = std::move(answer);
  asked_.erase(id);
  if (found) return *std::move(found);
  if (in_time) return status_;
  const absl::Status is_late = absl::DeadlineExceededError("the referee does not answer in time");
  given_up_.insert(id);
  if (late == Late::kBreaks) BreakLocked(is_late);
  return is_late;
}

absl::Status RefereeLink::Tell(const nlohmann::json& message, const std::vector<int>& descriptors) {
  return SendPacket(socket_.get(), message, descriptors);
}

void RefereeLink::Break(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  BreakLocked(std::move(reason));
}

void RefereeLink::BreakLocked(absl::Status reason) {
  if (!status_.ok()) return;
  status_ = std::move(reason);
  kill(pid_, SIGKILL);  // it is not reaped yet, so nobody else has its number
  shutdown(socket_.get(), SHUT_RDWR);
}

absl::Status RefereeLink::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void RefereeLink::ReadAnswers() {
  pthread_setname_np(pthread_self(), "referee-link");
  for (;;) {
    absl::StatusOr<Packet> packet = ReceivePacket(socket_.get());
    absl::MutexLock lock(&mutex_);
    if (!packet.ok()) return BreakLocked(packet.status());
    const int64_t id = Read(packet->fields, service::Judged::id);
    if (given_up_.erase(id) > 0) continue;
    const auto asked = asked_.find(id);
    if (asked == asked_.end() || asked->second.has_value()) {
      return BreakLocked(absl::InternalError("the referee answers another question"));
    }
    asked->second = *std::move(packet);
  }
}

}  // namespace warpsmith
