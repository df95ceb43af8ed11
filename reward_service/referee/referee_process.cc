#include "reward_service/referee/referee_process.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
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
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/request_json.h"
#include "reward_service/referee/calibration.h"
#include "reward_service/referee/cpu_device.h"
#include "reward_service/referee/gpu_device.h"
#include "reward_service/referee/judge.h"
#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/libraries/cuda_libraries.h"
#include "reward_service/referee/process/service_packets.h"
#include "reward_service/referee/profile/profile_sampler.h"
#include "reward_service/referee/recorder.h"
#include "reward_service/referee/task/clear_device.h"
#include "reward_service/referee/tensors/lacking_memory.h"
#include "reward_service/referee/tensors/memory_watch.h"
#include "reward_service/referee/tensors/released_gpu.h"
#include "reward_service/sandbox/sandbox.h"

namespace warpsmith {
namespace {

constexpr size_t kRequestsMax = 2 * kJudgedAtOnceOnGpu;
// Tasks that are made at once where oracles share a GPU: beyond that the driver makes no more contexts.
constexpr int kTaskMakersOnGpuMax = 6;
// A service has no more compile workers than a machine has cores.
constexpr size_t kRecordingsMax = 1024;
// Judgements in a row for which a GPU lacked memory: three attempts of each of those that run at once.
constexpr int kLackingMax = 3 * kJudgedAtOnceOnGpu;

void LeaveOrWarn(Lane& lane) {
  if (const absl::Status status = lane.Leave(); !status.ok()) LogWarning(status.ToString());
}

// Of a GPU's memory: inputs, or outputs, of a call at most. What a task may hold with all its draws says more.
constexpr int64_t kBufferShare = 8;

class RefereeProcess {
 public:
  RefereeProcess(int socket, RefereeOptions options)
      : socket_(socket),
        options_(std::move(options)),
        lane_(options_.lane_cores, options_.realtime,
              options_.gpu_uuid.empty() ? Lane::Judge::kOnAllCores : Lane::Judge::kApart) {
    limits_.oracle_memory_bytes_max = options_.oracle_memory_bytes_max;
    limits_.buffer_bytes_max = options_.buffer_bytes_max;
    limits_.jail_memory_bytes_max = options_.jail_memory_bytes_max;
    limits_.host_draw_bytes_max = options_.host_draw_bytes_max;
  }

  absl::Status Start() {
    RaiseDescriptorLimit();
    // Jails are made by the zygotes and inherited by us, whom alone the kernel then tells of their stops.
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return ErrnoStatus("PR_SET_CHILD_SUBREAPER", "");
    RETURN_IF_ERROR(lane_.StayOut());
    RETURN_IF_ERROR(CheckSandbox());
    // Before there is a thread that hands the environment to another program.
    if (!options_.gpu_uuid.empty())
      setenv("CUDA_VISIBLE_DEVICES", options_.gpu_uuid.c_str(), /*overwrite=*/1);
    absl::StatusOr<std::vector<std::filesystem::path>> folders = absl::UnknownError("not asked");
    std::thread asking([&] { folders = PythonFolders(options_.python); });
    std::optional<GpuAccess> gpu;
    const absl::Status opened = OpenGpu(&gpu);  // before anybody else has it
    asking.join();
    RETURN_IF_ERROR(opened);
    RETURN_IF_ERROR(folders.status());
    lacking_memory_ = std::make_unique<LackingMemory>(&store(), kLackingMax);
    // Torch's import takes longer than all else together, which is done meanwhile.
    ASSIGN_OR_RETURN(WarmingZygote python, Zygote::BeginPython(options_.python, options_.share_directory,
                                                               *folders, lane_.num_threads(), gpu));
    native_zygote_with_blas_ = NativeZygoteWithBlas(options_.bin_directory, gpu);
    python_zygote_with_products_ = PythonZygoteWithProducts(options_.python, options_.share_directory,
                                                            *folders, lane_.num_threads(), gpu);
    ASSIGN_OR_RETURN(native_zygote_, Zygote::StartNative(options_.bin_directory, gpu));
    ASSIGN_OR_RETURN(empty_native_, EmptyCandidate::Start(*native_zygote_, CandidateKind::kNative,
                                                          options_.share_directory, lane_, store()));
    ASSIGN_OR_RETURN(python_zygote_, std::move(python).Await());
    pool_ = std::make_unique<TaskPool>(
        limits_, python_zygote_.get(), &lane_,
        LaneTask::Place(python_zygote_.get(), limits_, lane_.num_threads(), store(), cpu_.facts),
        options_.num_tasks_max, tasks_bytes_max_, NumTaskMakers());
    return absl::OkStatus();
  }

  // Receives on this thread, judges on another.
  absl::Status Serve() {
    StartRecording();
    std::thread judge([this] { FirstJudge(); });
    absl::Status status;
    while (status.ok()) {
      absl::StatusOr<Packet> packet = ReceivePacket(socket_);
      status = packet.ok() ? Dispatch(*std::move(packet)) : packet.status();
    }
    requests_.Close();
    // Judges and recorders may be in the midst of a call; all their processes end with this one.
    judge.detach();
    return absl::IsUnavailable(status) ? absl::OkStatus() : status;
  }

 private:
  int NumTaskMakers() const {
    if (gpu_ == nullptr) return kTaskMakersMin;
    return std::clamp(lane_.num_cores_around() - lane_.num_threads(), kTaskMakersMin, kTaskMakersOnGpuMax);
  }
  TensorStore& store() { return gpu_ == nullptr ? HostStore() : *gpu_; }

  // The GPU of this lane, where it has one, as the only one that this process and its jails know.
  absl::Status OpenGpu(std::optional<GpuAccess>* access) {
    if (options_.gpu_uuid.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto gpus, cuda::ListGpus());
    if (gpus.size() != 1) return absl::NotFoundError(absl::StrCat("there is no GPU ", options_.gpu_uuid));
    cpu_.facts.gpu = gpus.front();
    ASSIGN_OR_RETURN(gpu_, OpenReleasedGpu(gpus.front().index, socket_));
    gpu_->set_end_waiting([this] { return kept_.Kill(); });
    gpu_->set_host_draw_bytes_max(limits_.host_draw_bytes_max);
    memory_watch_ = std::make_unique<MemoryWatch>(gpu_.get(), [this] { LeaveOrWarn(lane_); });
    tasks_bytes_max_ = gpus.front().memory_bytes * 3 / 8;           // the rest is for candidates
    ASSIGN_OR_RETURN(const int64_t free_bytes, gpu_->FreeBytes());  // others may have some for good
    limits_.device_bytes_max = LargestTaskBytes(free_bytes);
    limits_.buffer_bytes_max = std::max(limits_.buffer_bytes_max, free_bytes / kBufferShare);
    OpenClocks(gpus.front().uuid);
    ASSIGN_OR_RETURN(const cuda::Driver* driver, cuda::Driver::Load());
    ASSIGN_OR_RETURN(CudaLibraries libraries, FindCudaLibraries(driver->path()));
    cpu_.tells_launches = !libraries.profiler.empty();
    cpu_.kept = &kept_;
    cpu_.core_pace = &core_pace_;
    *access = GpuAccess{.uuid = options_.gpu_uuid,
                        .driver = driver->path(),
                        .runtime = std::move(libraries.runtime),
                        .profiler = std::move(libraries.profiler)};
    return absl::OkStatus();
  }

  // A GPU may be timed without.
  void OpenClocks(const std::string& uuid) {
    clocks_ = cuda::ClockReader::Open(uuid);
    cpu_.clocks = &clocks_;
    LogInfo(clocks_.ok()
                ? absl::StrCat("reading the clocks of ", uuid, " takes ", clocks_.value()->query_us(), " us")
                : absl::StrCat("the clocks of ", uuid, " are not known: ", clocks_.status().message()));
  }

  absl::Status Dispatch(Packet packet) {
    if (!Is<service::Prefetch>(packet.fields)) {
      const bool has_room = Is<service::Record>(packet.fields)
                                ? recordings_.TryPush(Waiting(std::move(packet)))
                                : requests_.TryPush(std::move(packet));
      return has_room ? absl::OkStatus()
                      : absl::ResourceExhaustedError("the service asks more than may wait here");
    }
    ASSIGN_OR_RETURN(const TaskSource task, ReadTask(packet));
    pool_->Prefetch(task);
    return absl::OkStatus();
  }

  // Where the device is one for all several are judged at once: what is not timed needs no lane.
  void FirstJudge() {
    const absl::Status status = Calibrate();
    Answer(status.ok() ? Make<service::Started>({{service::Started::facts, cpu_.facts}})
                       : FailedPacket(status));
    const int num_others = gpu_ == nullptr ? 0 : kJudgedAtOnceOnGpu - 1;
    for (int i = 0; i < num_others; ++i) std::thread([this] { JudgeRequests(); }).detach();
    JudgeRequests();
  }

  void JudgeRequests() {
    pthread_setname_np(pthread_self(), "judge");
    if (gpu_ != nullptr) LeaveOrWarn(lane_);
    while (!requests_.Finished()) {
      std::optional<Packet> packet = requests_.Pop(absl::InfiniteDuration());
      if (packet) Handle(*packet);
    }
  }

  absl::Status Calibrate() {
    RETURN_IF_ERROR(lane_.Hold());
    tools_.pool = pool_.get();
    tools_.open_device = [this](const Judgement& judgement) {
      return gpu_ == nullptr ? CpuDevice::Open(cpu_, judgement)
                             : GpuDevice::Open(cpu_, gpu_.get(), judgement);
    };
    cpu_.lane = &lane_;
    cpu_.native_zygote = native_zygote_.get();
    cpu_.python_zygote = python_zygote_.get();
    cpu_.native_zygote_with_blas = native_zygote_with_blas_.get();
    cpu_.python_zygote_with_products = python_zygote_with_products_.get();
    cpu_.jail_memory_bytes_max = limits_.jail_memory_bytes_max;
    RefereeFacts& facts = cpu_.facts;
    facts.lane_cores = lane_.cores();
    facts.realtime = lane_.realtime();
    facts.profile = ProfileSampler::IsPossible();
    facts.torch_version = python_zygote_->torch_version();
    facts.torch_cpu_capability = python_zygote_->torch_cpu_capability();
    ASSIGN_OR_RETURN(empty_python_, EmptyCandidate::Start(*python_zygote_, CandidateKind::kKernelBenchPython,
                                                          options_.share_directory, lane_, store()));
    cpu_.empty_native = empty_native_.get();
    cpu_.empty_python = empty_python_.get();
    RETURN_IF_ERROR(MeasureMachine());
    LogInfo(absl::StrCat("Torch ", facts.torch_version, ": ready"));
    return absl::OkStatus();
  }

  absl::Status MeasureMachine() {
    RETURN_IF_ERROR(MeasureHost(lane_, empty_python_.get(), &cpu_.facts));
    if (gpu_ == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(cpu_.facts.gigabytes_per_second_ceiling, gpu_->MeasureCopying());
    return LearnPace(empty_python_.get(), empty_native_.get(), &core_pace_);
  }

  void Answer(const nlohmann::json& fields, const std::vector<int>& descriptors = {}) {
    const absl::Status status = SendPacket(socket_, fields, descriptors);
    if (!status.ok()) LogError(absl::StrCat("cannot answer the service: ", status.ToString()));
  }

  void Handle(const Packet& packet) {
    const int64_t id = Read(packet.fields, service::Judge::id);
    if (Is<service::Calibrate>(packet.fields)) return HandleCalibrate(id);
    const absl::StatusOr<UniqueFd> measured = Measure(packet);
    AnswerWith(Make<service::Judged>(), measured, packet);
    // A broken parent or machine does not heal: the service starts another referee. Neither does a GPU whose memory is
    // wanting again and again though all who were seen to keep some have ended.
    const bool lacks_memory = lacking_memory_->IsLostAfter(measured.status());
    if (lacks_memory || absl::IsUnavailable(measured.status()) || absl::IsInternal(measured.status())) {
      LogError(absl::StrCat("ending after: ", measured.status().ToString()));
      _exit(1);
    }
  }

  // `text` goes with the answer; its failure takes the answer's place.
  void AnswerWith(nlohmann::json answer, const absl::StatusOr<UniqueFd>& text, const Packet& packet) {
    if (!text.ok()) answer = FailedPacket(text.status());
    answer[service::Judged::id.name] = Read(packet.fields, service::Judge::id);
    Answer(answer, text.ok() ? std::vector<int>{text->get()} : std::vector<int>{});
  }

  // The measurement of the candidate, sealed.
  absl::StatusOr<UniqueFd> Measure(const Packet& packet) {
    ASSIGN_OR_RETURN(const JudgeRequest request, ReadJudgeRequest(packet));
    const double seconds = Read(packet.fields, service::Judge::timeout_seconds);
    Judge judge(tools_, request, absl::Now() + absl::Seconds(seconds));
    ASSIGN_OR_RETURN(const v1::Measurement measurement, judge.Run());
    return SealedMemoryFile(measurement.SerializeAsString());
  }

  void HandleCalibrate(int64_t id) {
    const absl::Status status = CalibrateAgain();
    nlohmann::json answer = status.ok()
                                ? Make<service::Calibrated>({{service::Calibrated::facts, cpu_.facts}})
                                : FailedPacket(status);
    answer[service::Calibrated::id.name] = id;
    Answer(answer);
  }

  // Alone on the GPU, where there is one, and on the lane.
  absl::Status CalibrateAgain() {
    ASSIGN_OR_RETURN(const auto turn,
                     DeviceTurn::Take(store().turn(), DeviceTurn::Kind::kAlone, absl::Now() + kTurnWaitMax));
    if (gpu_ != nullptr) {
      RETURN_IF_ERROR(ClearDevice([this] { return gpu_->AwaitDone(kRecoverySeconds).status(); },
                                  [this] { return gpu_->EndWaiting(); }, pool_.get()));
    }
    RETURN_IF_ERROR(lane_.Hold());
    absl::Status status = MeasureMachine();
    if (gpu_ != nullptr) status.Update(lane_.Leave());
    return status;
  }

  struct Recording {
    Packet packet;
    absl::Time deadline;
  };
  static Recording Waiting(Packet packet) {
    const double seconds = Read(packet.fields, service::Record::timeout_seconds);
    return {std::move(packet), absl::Now() + absl::Seconds(seconds)};
  }

  // Recordings need no lane: each core beside it may do one. None ends the referee, whatever it fails of.
  void StartRecording() {
    recorder_ =
        std::make_unique<Recorder>(Recorder::Options{.jail_memory_bytes_max = limits_.jail_memory_bytes_max,
                                                     .num_threads = lane_.num_threads(),
                                                     .gpu = cpu_.facts.gpu},
                                   pool_.get(), python_zygote_.get(), &store());
    const int num_threads = std::max(1, lane_.num_cores_around() - lane_.num_threads());
    for (int i = 0; i < num_threads; ++i) std::thread([this] { RecordThread(); }).detach();
  }

  void RecordThread() {
    pthread_setname_np(pthread_self(), "recorder");
    if (const absl::Status status = lane_.StayOut(); !status.ok()) LogWarning(status.ToString());
    while (!recordings_.Finished()) {
      std::optional<Recording> recording = recordings_.Pop(absl::InfiniteDuration());
      if (!recording) continue;
      absl::StatusOr<RecordedList> recorded = Record(*recording);
      const bool own_kernels = recorded.ok() && recorded->own_kernels;
      AnswerWith(Make<service::Recorded>({{service::Recorded::own_kernels, own_kernels}}),
                 ListOf(std::move(recorded)), recording->packet);
    }
  }

  absl::StatusOr<RecordedList> Record(const Recording& recording) {
    const Packet& packet = recording.packet;
    if (packet.descriptors.size() < 2) return absl::InternalError("a request without its program");
    ASSIGN_OR_RETURN(const TaskSource task, ReadTask(packet));
    return recorder_->Record(task, packet.descriptors[1].get(), recording.deadline);
  }

  const int socket_;
  const RefereeOptions options_;
  Lane lane_;
  TaskLimits limits_;
  int64_t tasks_bytes_max_ = std::numeric_limits<int64_t>::max();  // of the GPU's memory
  std::unique_ptr<GpuStore> gpu_;                                  // null: this lane judges on its cores
  std::unique_ptr<MemoryWatch> memory_watch_;
  GpuClockReader clocks_;
  std::unique_ptr<Zygote> native_zygote_;
  std::unique_ptr<Zygote> python_zygote_;
  std::unique_ptr<LateZygote> native_zygote_with_blas_;
  std::unique_ptr<LateZygote> python_zygote_with_products_;
  std::unique_ptr<TaskPool> pool_;
  std::unique_ptr<EmptyCandidate> empty_native_;
  std::unique_ptr<EmptyCandidate> empty_python_;
  AllKeptJails kept_;
  CorePace core_pace_;
  LaneTools cpu_;
  JudgeTools tools_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<LackingMemory> lacking_memory_;
  BoundedQueue<Packet> requests_{kRequestsMax};
  BoundedQueue<Recording> recordings_{kRecordingsMax};
};

}  // namespace

absl::Status ServeReferee(int socket) {
  ASSIGN_OR_RETURN(const Packet start, ReceivePacket(socket));
  // Lives until the process exits: its threads may be in the midst of a call.
  auto* const process =
      new RefereeProcess(socket, Read(start.fields, service::Start::referee_options).get<RefereeOptions>());
  if (const absl::Status status = process->Start(); !status.ok()) {
    RETURN_IF_ERROR(SendPacket(socket, FailedPacket(status)));
    return status;
  }
  return process->Serve();
}

}  // namespace warpsmith
