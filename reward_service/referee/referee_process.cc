#include "reward_service/referee/referee_process.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/bounded_queue.h"
#include "core/base/descriptor_limit.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/judgement_json.h"
#include "reward_service/referee/calibration.h"
#include "reward_service/referee/judge.h"
#include "reward_service/referee/profile/profile_sampler.h"
#include "reward_service/sandbox/sandbox.h"

namespace warpsmith {
namespace {

constexpr size_t kRequestsMax = 4;
constexpr int64_t kSourceBytesMax = 16 << 20;
constexpr int64_t kRecordingBytesMax = 4 << 20;
constexpr int kRecordingCpuSeconds = 10;
constexpr absl::Duration kRecordingTimeout = absl::Seconds(15);

absl::StatusOr<std::string> ReadText(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus("fstat", "source");
  if (info.st_size > kSourceBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a source has ", info.st_size, " bytes, over ", kSourceBytesMax));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (pread(fd, text.data(), text.size(), 0) != info.st_size) return ErrnoStatus("read", "source");
  return text;
}

absl::StatusOr<TaskSource> ReadTask(const Packet& packet) {
  if (packet.descriptors.empty()) return absl::InternalError("a request without its task");
  ASSIGN_OR_RETURN(std::string source, ReadText(packet.descriptors[0].get()));
  return TaskSource{TextField(packet.fields, "key", 128), std::move(source)};
}

class RefereeProcess {
 public:
  RefereeProcess(int socket, const nlohmann::json& options)
      : socket_(socket),
        bin_directory_(TextField(options, "bin_directory")),
        share_directory_(TextField(options, "share_directory")),
        python_(TextField(options, "python")),
        lane_(options.at("lane_cores").get<std::vector<int>>(), options.at("realtime").get<bool>()) {
    limits_.oracle_memory_bytes_max = IntegerField(options, "oracle_memory_bytes_max", 1 << 20, INT64_MAX, 0);
    limits_.buffer_bytes_max = IntegerField(options, "buffer_bytes_max", 1 << 12, INT64_MAX, 0);
    limits_.jail_memory_bytes_max = IntegerField(options, "jail_memory_bytes_max", 1 << 20, INT64_MAX, 0);
    num_tasks_max_ = static_cast<int>(IntegerField(options, "num_tasks_max", 1, 4096, 16));
  }

  absl::Status Start() {
    RaiseDescriptorLimit();
    // Jails are made by the zygotes and inherited by us, whom alone the kernel then tells of their
    // stops.
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return ErrnoStatus("PR_SET_CHILD_SUBREAPER", "");
    RETURN_IF_ERROR(lane_.StayOut());
    RETURN_IF_ERROR(CheckSandbox());
    ASSIGN_OR_RETURN(native_zygote_, Zygote::StartNative(bin_directory_));
    ASSIGN_OR_RETURN(const auto folders, PythonFolders(python_));
    ASSIGN_OR_RETURN(python_zygote_,
                     Zygote::StartPython(python_, share_directory_, folders, lane_.num_threads()));
    pool_ = std::make_unique<TaskPool>(limits_, python_zygote_.get(), &lane_, num_tasks_max_);
    return absl::OkStatus();
  }

  // Receives on this thread, judges on another.
  absl::Status Serve() {
    std::thread judge([this] { JudgeThread(); });
    absl::Status status;
    while (status.ok()) {
      absl::StatusOr<Packet> packet = ReceivePacket(socket_);
      status = packet.ok() ? Dispatch(*std::move(packet)) : packet.status();
    }
    requests_.Close();
    // The judge may be in the midst of a call; all its processes end with this one.
    judge.detach();
    return absl::IsUnavailable(status) ? absl::OkStatus() : status;
  }

 private:
  absl::Status Dispatch(Packet packet) {
    if (TextField(packet.fields, "op") != "prefetch") {
      return requests_.Push(std::move(packet), absl::ZeroDuration())
                 ? absl::OkStatus()
                 : absl::ResourceExhaustedError("the service sends faster than one request at a time");
    }
    ASSIGN_OR_RETURN(const TaskSource task, ReadTask(packet));
    pool_->Prefetch(task);
    return absl::OkStatus();
  }

  void JudgeThread() {
    pthread_setname_np(pthread_self(), "judge");
    const absl::Status status = Calibrate();
    Answer(status.ok() ? nlohmann::json{{"op", "started"}, {"facts", ToJson(tools_.facts)}} : Failed(status));
    while (!requests_.Finished()) {
      std::optional<Packet> packet = requests_.Pop(absl::InfiniteDuration());
      if (packet) Handle(*packet);
    }
  }

  absl::Status Calibrate() {
    RETURN_IF_ERROR(lane_.Hold());
    tools_.lane = &lane_;
    tools_.pool = pool_.get();
    tools_.native_zygote = native_zygote_.get();
    tools_.python_zygote = python_zygote_.get();
    tools_.jail_memory_bytes_max = limits_.jail_memory_bytes_max;
    RefereeFacts& facts = tools_.facts;
    facts.lane_cores = lane_.cores();
    facts.realtime = lane_.realtime();
    facts.profile = ProfileSampler::IsPossible();
    facts.torch_version = python_zygote_->torch_version();
    facts.torch_cpu_capability = python_zygote_->torch_cpu_capability();
    ASSIGN_OR_RETURN(empty_native_,
                     EmptyCandidate::Start(*native_zygote_, CandidateKind::kNative, share_directory_, lane_));
    ASSIGN_OR_RETURN(empty_python_, EmptyCandidate::Start(*python_zygote_, CandidateKind::kKernelBenchPython,
                                                          share_directory_, lane_));
    tools_.empty_native = empty_native_.get();
    tools_.empty_python = empty_python_.get();
    return MeasureHost(lane_, empty_python_.get(), &facts);
  }

  static nlohmann::json Failed(const absl::Status& status) {
    return {{"op", "failed"},
            {"code", static_cast<int>(status.code())},
            {"error", std::string(status.message())}};
  }

  void Answer(const nlohmann::json& fields, const std::vector<int>& descriptors = {}) {
    const absl::Status status = SendPacket(socket_, fields, descriptors);
    if (!status.ok()) LogError(absl::StrCat("cannot answer the service: ", status.ToString()));
  }

  void Handle(const Packet& packet) {
    const int64_t id = IntegerField(packet.fields, "id", 0, INT64_MAX, 0);
    const std::string operation = TextField(packet.fields, "op");
    if (operation == "record") return HandleRecord(packet, id);
    if (operation == "calibrate") return HandleCalibrate(id);
    const absl::StatusOr<Judgement> judgement = HandleJudge(packet);
    nlohmann::json answer = judgement.ok()
                                ? nlohmann::json{{"op", "judged"}, {"judgement", ToJson(*judgement)}}
                                : Failed(judgement.status());
    answer["id"] = id;
    Answer(answer);
    // A broken parent or machine does not heal: the service starts another referee.
    if (absl::IsUnavailable(judgement.status()) || absl::IsInternal(judgement.status())) {
      LogError(absl::StrCat("ending after: ", judgement.status().ToString()));
      _exit(1);
    }
  }

  absl::StatusOr<Judgement> HandleJudge(const Packet& packet) {
    if (packet.descriptors.size() < 2) return absl::InternalError("a request without its program");
    JudgeRequest request;
    ASSIGN_OR_RETURN(request.task, ReadTask(packet));
    const bool native = TextField(packet.fields, "kind") == "native";
    request.kind = native ? CandidateKind::kNative : CandidateKind::kKernelBenchPython;
    if (native) {
      request.library_fd = packet.descriptors[1].get();
    } else {
      ASSIGN_OR_RETURN(request.source, ReadText(packet.descriptors[1].get()));
    }
    for (size_t i = 2; i < packet.descriptors.size(); ++i)
      request.extension_fds.push_back(packet.descriptors[i].get());
    request.limits = LimitsFromJson(packet.fields.at("limits"));
    request.timing = TimingFromJson(packet.fields.at("timing"));
    request.verify_only = packet.fields.at("verify_only").get<bool>();
    if (packet.fields.contains("seed")) request.seed = packet.fields["seed"].get<uint64_t>();
    const double seconds = NumberField(packet.fields, "timeout_seconds", 0, 86400, 60);
    Judge judge(tools_, request, absl::Now() + absl::Seconds(seconds));
    return judge.Run();
  }

  void HandleCalibrate(int64_t id) {
    const absl::Status status = MeasureHost(lane_, empty_python_.get(), &tools_.facts);
    nlohmann::json answer =
        status.ok() ? nlohmann::json{{"op", "calibrated"}, {"facts", ToJson(tools_.facts)}} : Failed(status);
    answer["id"] = id;
    Answer(answer);
  }

  void HandleRecord(const Packet& packet, int64_t id) {
    UniqueFd list;
    const absl::Status status = Record(packet, list);
    nlohmann::json answer = status.ok() ? nlohmann::json{{"op", "recorded"}} : Failed(status);
    answer["id"] = id;
    Answer(answer, status.ok() ? std::vector<int>{list.get()} : std::vector<int>{});
  }

  // Off the lane: nothing is timed here.
  absl::Status Record(const Packet& packet, UniqueFd& list) {
    if (packet.descriptors.size() < 2) return absl::InternalError("a request without its program");
    ASSIGN_OR_RETURN(const TaskSource task, ReadTask(packet));
    const absl::Time deadline = absl::Now() + kRecordingTimeout;
    const auto pooled = pool_->GetExamined(task, deadline);
    if (absl::IsInvalidArgument(
            pooled.status())) {  // the task's fault, and here INVALID_ARGUMENT is the program's
      return absl::FailedPreconditionError(pooled.status().message());
    }
    RETURN_IF_ERROR(pooled.status());
    ASSIGN_OR_RETURN(auto process, python_zygote_->Fork({"python", limits_.jail_memory_bytes_max,
                                                         kRecordingCpuSeconds, lane_.num_threads()}));
    RETURN_IF_ERROR(process->AwaitHello(deadline));
    ASSIGN_OR_RETURN(const auto buffer, SharedBuffer::Create(kRecordingBytesMax));
    const absl::StatusOr<Packet> answer =
        process->Ask({{"op", "record"},
                      {"init_inputs", pooled.value()->task->init_inputs()},
                      {"inputs", ToJson(pooled.value()->task->layout().inputs)}},
                     {packet.descriptors[1].get(), buffer->fd()}, deadline);
    if (absl::IsDeadlineExceeded(answer.status()))
      return absl::InvalidArgumentError("the program does not end");
    if (!answer.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the program ", DescribeEnding(process->AwaitEnd())));
    }
    if (TextField(answer->fields, "op") != "recorded") {
      return absl::InvalidArgumentError(Escape(TextField(answer->fields, "error", 600), 600));
    }
    process.reset();  // nobody writes to the buffer any more
    const int64_t num_bytes = IntegerField(answer->fields, "bytes", 0, kRecordingBytesMax, 0);
    ASSIGN_OR_RETURN(list, SharedBuffer::SealedText({buffer->data(), static_cast<size_t>(num_bytes)}));
    return absl::OkStatus();
  }

  const int socket_;
  const std::filesystem::path bin_directory_;
  const std::filesystem::path share_directory_;
  const std::filesystem::path python_;
  Lane lane_;
  TaskLimits limits_;
  int num_tasks_max_ = 0;
  std::unique_ptr<Zygote> native_zygote_;
  std::unique_ptr<Zygote> python_zygote_;
  std::unique_ptr<TaskPool> pool_;
  std::unique_ptr<EmptyCandidate> empty_native_;
  std::unique_ptr<EmptyCandidate> empty_python_;
  JudgeTools tools_;
  BoundedQueue<Packet> requests_{kRequestsMax};
};

}  // namespace

absl::Status ServeReferee(int socket) {
  ASSIGN_OR_RETURN(const Packet start, ReceivePacket(socket));
  // Lives until the process exits: its threads may be in the midst of a call.
  auto* const process = new RefereeProcess(socket, start.fields);
  if (const absl::Status status = process->Start(); !status.ok()) {
    RETURN_IF_ERROR(SendPacket(socket, {{"op", "failed"},
                                        {"code", static_cast<int>(status.code())},
                                        {"error", std::string(status.message())}}));
    return status;
  }
  return process->Serve();
}

}  // namespace warpsmith
