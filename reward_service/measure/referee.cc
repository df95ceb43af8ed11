#include "reward_service/measure/referee.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/malloc_tunables.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/jail/shared_buffer.h"
#include "reward_service/measure/request_json.h"

extern char** environ;

namespace warpsmith {
namespace {

// A driver that has just been loaded takes seconds.
constexpr int kFindGpusSeconds = 60;
constexpr int kSocketInside = 3;
constexpr absl::Duration kStartTimeout = absl::Seconds(180);
// As often as a candidate is judged: a task that is slow to be made ready is so before, or at fault.
constexpr int kLateAnswersMax = 3;

// The folder of this program, or bin/ beside it (tests).
std::filesystem::path FindBinDirectory() {
  const std::filesystem::path here = ExecutableDirectory();
  std::error_code error;
  return std::filesystem::exists(here / "warpsmith-referee", error) ? here : here.parent_path() / "bin";
}

std::filesystem::path ShareOf(const std::filesystem::path& bin_directory) {
  return bin_directory.parent_path() / "share" / "warpsmith";
}

// A task of a million elements keeps its draws, buffers and three baselines with their grown heaps.
int NumTasksByMemory(int num_lanes) {
  constexpr int64_t kTaskBytes = int64_t{320} << 20;
  const int64_t memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return static_cast<int>(std::clamp<int64_t>(memory_bytes / 2 / kTaskBytes / num_lanes, 8, 128));
}

nlohmann::json StartFields(const RefereeOptions& options) {
  using service::Start;
  return Make<Start>({{Start::lane_cores, options.lane_cores},
                      {Start::python, options.python.string()},
                      {Start::bin_directory, options.bin_directory.string()},
                      {Start::share_directory, options.share_directory.string()},
                      {Start::realtime, options.realtime},
                      {Start::jail_memory_bytes_max, options.jail_memory_bytes_max},
                      {Start::oracle_memory_bytes_max, options.oracle_memory_bytes_max},
                      {Start::buffer_bytes_max, options.buffer_bytes_max},
                      {Start::num_tasks_max, options.num_tasks_max > 0 ? options.num_tasks_max
                                                                       : NumTasksByMemory(options.num_lanes)},
                      {Start::gpu_uuid, options.gpu_uuid}});
}

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

// A running referee process; killed on destruction, and its jails with it.
class Connection {
 public:
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::filesystem::path& program) {
    ASSIGN_OR_RETURN(auto pair, MakePacketPair());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // A copy far away: the descriptor itself may be number 3, which dup2 would leave close-on-exec.
    const UniqueFd copy(fcntl(pair.second.get(), F_DUPFD_CLOEXEC, 64));
    posix_spawn_file_actions_adddup2(&actions, copy.get(), kSocketInside);
    posix_spawn_file_actions_addclosefrom_np(&actions, kSocketInside + 1);
    std::string name = program.string();
    std::string socket = absl::StrCat(kSocketInside);
    char* arguments[] = {name.data(), socket.data(), nullptr};
    pid_t pid = -1;
    // One arena, so that a task made by any thread takes what a retired one left.
    std::string tunables = absl::StrCat(kMallocTunables, ":glibc.malloc.arena_max=1");
    std::vector<char*> environment = RefereeEnvironment(&tunables);
    const int error = posix_spawn(&pid, name.c_str(), &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
      return absl::FailedPreconditionError(absl::StrCat("start ", name, ": ", std::strerror(error)));
    return std::unique_ptr<Connection>(new Connection(pid, std::move(pair.first)));
  }

  ~Connection() {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_.get(); }

 private:
  Connection(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;
  UniqueFd socket_;
};

absl::Status StatusOfFailure(const Packet& packet) {
  const int code = static_cast<int>(Read(packet.fields, service::Failed::code));
  return absl::Status(static_cast<absl::StatusCode>(code), Read(packet.fields, service::Failed::error));
}

absl::StatusOr<v1::Measurement> ReadMeasurement(const Packet& answer) {
  if (answer.descriptors.size() != 1) return absl::InternalError("the referee's answer has no measurement");
  const absl::StatusOr<std::string> bytes =
      SharedBuffer::ReadText(answer.descriptors[0].get(), service::Judged::kMeasurementBytesMax);
  v1::Measurement measurement;
  if (!bytes.ok() || !measurement.ParseFromString(*bytes)) {
    return absl::InternalError(
        absl::StrCat("the referee's measurement cannot be read: ", bytes.status().message()));
  }
  return measurement;
}

class RefereeClient : public Referee {
 public:
  explicit RefereeClient(RefereeOptions options) : options_(std::move(options)) {}

  absl::Status Connect() {
    ASSIGN_OR_RETURN(connection_, Connection::Open(options_.bin_directory / "warpsmith-referee"));
    absl::Status status = SendPacket(connection_->socket(), StartFields(options_));
    if (status.ok()) status = AwaitStart();
    if (!status.ok()) connection_.reset();
    return status;
  }

  absl::StatusOr<v1::Measurement> Judge(const JudgeRequest& request, absl::Time deadline) override {
    ASSIGN_OR_RETURN(const UniqueFd task, SharedBuffer::SealedText(request.task.reference_source));
    std::vector<int> descriptors = {task.get(), request.library_fd};
    UniqueFd source;
    if (request.kind == CandidateKind::kKernelBenchPython) {
      ASSIGN_OR_RETURN(source, SharedBuffer::SealedText(request.source));
      descriptors[1] = source.get();
      descriptors.insert(descriptors.end(), request.extension_fds.begin(), request.extension_fds.end());
    }
    using Message = service::Judge;
    const bool is_native = request.kind == CandidateKind::kNative;
    auto fields = Make<Message>({{Message::key, request.task.key},
                                 {Message::kind, is_native ? Message::kNative : Message::kPython},
                                 {Message::limits, ToJson(request.limits)},
                                 {Message::timing, ToJson(request.timing)},
                                 {Message::verify_only, request.verify_only},
                                 {Message::another_follows, request.another_follows}});
    if (request.seed) fields[Message::seed.name] = *request.seed;
    ASSIGN_OR_RETURN(const Packet answer, Ask(std::move(fields), descriptors, deadline));
    if (!Is<service::Judged>(answer.fields)) return AsInfrastructure(TakeFailure(answer));
    num_late_answers_ = 0;
    return ReadMeasurement(answer);
  }

  absl::StatusOr<std::vector<ExtensionRecord>> RecordExtensions(const TaskSource& task,
                                                                const std::string& source,
                                                                absl::Time deadline) override {
    ASSIGN_OR_RETURN(const UniqueFd task_fd, SharedBuffer::SealedText(task.reference_source));
    ASSIGN_OR_RETURN(const UniqueFd source_fd, SharedBuffer::SealedText(source));
    ASSIGN_OR_RETURN(const Packet answer, Ask(Make<service::Record>({{service::Record::key, task.key}}),
                                              {task_fd.get(), source_fd.get()}, deadline));
    if (!Is<service::Recorded>(answer.fields)) return TakeFailure(answer);
    num_late_answers_ = 0;
    if (answer.descriptors.size() != 1) return absl::InternalError("the referee's answer has no list");
    ASSIGN_OR_RETURN(const std::string text, SharedBuffer::ReadText(answer.descriptors[0].get(),
                                                                    service::Recorded::kRecordingBytesMax));
    return ExtensionsFromJson(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false));
  }

  absl::Status Revive() override {
    num_restarts_ = 0;  // who asks for it counts by itself
    return Reconnect();
  }

  absl::Status Calibrate() override {
    ASSIGN_OR_RETURN(const Packet answer, Ask(Make<service::Calibrate>(), {}, absl::Now() + kStartTimeout));
    if (!Is<service::Calibrated>(answer.fields)) return StatusOfFailure(answer);
    facts_ = FactsFromJson(Read(answer.fields, service::Calibrated::facts));
    return absl::OkStatus();
  }

  void Prefetch(const TaskSource& task) override {
    if (connection_ == nullptr) return;
    const absl::StatusOr<UniqueFd> source = SharedBuffer::SealedText(task.reference_source);
    if (source.ok()) {
      (void)SendPacket(connection_->socket(), Make<service::Prefetch>({{service::Prefetch::key, task.key}}),
                       {source->get()});
    }
  }

  const RefereeFacts& facts() const override { return facts_; }

 private:
  absl::Status AwaitStart() {
    const absl::StatusOr<Packet> answer = ReceivePacket(connection_->socket(), absl::Now() + kStartTimeout);
    if (!answer.ok())
      return absl::InternalError(absl::StrCat("the referee did not start: ", answer.status().message()));
    if (!Is<service::Started>(answer->fields)) return StatusOfFailure(*answer);
    facts_ = FactsFromJson(Read(answer->fields, service::Started::facts));
    return absl::OkStatus();
  }

  // After some failures the referee ends, and may not have ended yet: whoever asks next needs another. So does who is
  // told again and again that time is up: something in there may hang, in the driver of a GPU say.
  absl::Status TakeFailure(const Packet& answer) {
    absl::Status status = StatusOfFailure(answer);
    num_late_answers_ = absl::IsDeadlineExceeded(status) ? num_late_answers_ + 1 : 0;
    const bool hangs = num_late_answers_ == kLateAnswersMax;
    if (absl::IsUnavailable(status) || absl::IsInternal(status) || hangs) {
      connection_.reset();
      num_late_answers_ = 0;
    }
    return status;
  }

  // INVALID_ARGUMENT means the candidate's fault to our callers, and a failed judgement is never that.
  static absl::Status AsInfrastructure(const absl::Status& status) {
    return absl::IsInvalidArgument(status) ? absl::InternalError(status.message()) : status;
  }

  absl::Status Reconnect() {
    if (connection_ != nullptr) return absl::OkStatus();
    if (num_restarts_ >= options_.num_restarts_max) {
      return absl::UnavailableError(
          absl::StrCat("the referee died ", num_restarts_, " times in a row; it is given up"));
    }
    ++num_restarts_;
    LogWarning(
        absl::StrCat("starting the referee of lane ", facts_.lane_cores, " again, restart ", num_restarts_));
    return Connect();
  }

  // One request, one answer. A referee that does not answer is ended: the next request starts another.
  absl::StatusOr<Packet> Ask(nlohmann::json fields, const std::vector<int>& descriptors,
                             absl::Time deadline) {
    RETURN_IF_ERROR(Reconnect());
    fields[service::Judge::id.name] = ++last_id_;
    fields[service::Judge::timeout_seconds.name] = absl::ToDoubleSeconds(deadline - absl::Now());
    absl::Status status = SendPacket(connection_->socket(), fields, descriptors);
    if (absl::IsUnavailable(status)) {  // it died in idle time: nothing was asked yet, so another may be
      connection_.reset();
      RETURN_IF_ERROR(Reconnect());
      status = SendPacket(connection_->socket(), fields, descriptors);
    }
    if (status.ok()) {
      absl::StatusOr<Packet> answer = ReceivePacket(connection_->socket(), deadline + absl::Seconds(1));
      if (answer.ok() && Read(answer->fields, service::Judged::id) == last_id_) {
        num_restarts_ = 0;
        return answer;
      }
      status = answer.ok() ? absl::InternalError("the referee answers another question") : answer.status();
    }
    connection_.reset();
    return status;
  }

  RefereeOptions options_;
  RefereeFacts facts_;
  std::unique_ptr<Connection> connection_;
  int64_t last_id_ = 0;
  int num_restarts_ = 0;
  int num_late_answers_ = 0;  // in a row
};

}  // namespace

std::filesystem::path ShareDirectory() { return ShareOf(FindBinDirectory()); }

absl::StatusOr<std::vector<cuda::GpuFacts>> FindGpus(const std::filesystem::path& bin_directory) {
  const std::filesystem::path folder = bin_directory.empty() ? FindBinDirectory() : bin_directory;
  const std::string program = (folder / "warpsmith-referee").string();
  FILE* const pipe =
      popen(absl::StrCat("timeout ", kFindGpusSeconds, " '", program, "' --gpus 2>&1").c_str(), "r");
  if (pipe == nullptr) return ErrnoStatus("run", program);
  std::string text;
  char part[4096];
  for (size_t n = 0; (n = fread(part, 1, sizeof(part), pipe)) > 0;) text.append(part, n);
  const int status = pclose(pipe);
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (status == 0 && list.is_array()) return GpusFromJson(list);
  return absl::FailedPreconditionError(
      absl::StrCat("the GPUs of this machine cannot be used: ", Escape(text, 500)));
}

absl::StatusOr<std::unique_ptr<Referee>> Referee::Start(RefereeOptions options) {
  if (options.lane_cores.empty()) return absl::InvalidArgumentError("a lane needs at least one core");
  if (options.bin_directory.empty()) options.bin_directory = FindBinDirectory();
  if (options.share_directory.empty()) {
    options.share_directory = ShareOf(options.bin_directory);
  }
  if (options.python.empty()) options.python = GetBuildInfo().python;
  auto client = std::make_unique<RefereeClient>(std::move(options));
  RETURN_IF_ERROR(client->Connect());
  return std::unique_ptr<Referee>(std::move(client));
}

}  // namespace warpsmith
