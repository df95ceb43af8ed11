#include "reward_service/measure/referee.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/referee_link.h"
#include "reward_service/measure/request_json.h"

namespace warpsmith {
namespace {

// A driver that has just been loaded takes seconds.
constexpr int kFindGpusSeconds = 60;
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

// On cores a task of a million elements keeps its draws, buffers and three baselines with their grown heaps; on a GPU
// draws and buffers are there, and its two processes have some 60 MB each.
int NumTasksByMemory(const RefereeOptions& options) {
  const int64_t task_bytes = int64_t{options.gpu_uuid.empty() ? 320 : 128} << 20;
  const int64_t memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return static_cast<int>(std::clamp<int64_t>(memory_bytes / 2 / task_bytes / options.num_lanes, 8, 128));
}

nlohmann::json StartMessage(RefereeOptions options) {
  if (options.num_tasks_max <= 0) options.num_tasks_max = NumTasksByMemory(options);
  return Make<service::Start>({{service::Start::referee_options, options}});
}

absl::Status StatusOfFailure(const Packet& packet) {
  const int code = static_cast<int>(Read(packet.fields, service::Failed::code));
  return absl::Status(static_cast<absl::StatusCode>(code), Read(packet.fields, service::Failed::error));
}

absl::StatusOr<v1::Measurement> ReadMeasurement(const Packet& answer) {
  if (answer.descriptors.size() != 1) return absl::InternalError("the referee's answer has no measurement");
  const absl::StatusOr<std::string> bytes =
      ReadMemoryFile(answer.descriptors[0].get(), service::Judged::kMeasurementBytesMax);
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

  absl::Status Connect() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return ConnectLocked();
  }

  absl::StatusOr<v1::Measurement> Judge(const JudgeRequest& request, absl::Time deadline) override {
    ASSIGN_OR_RETURN(const UniqueFd task, SealedMemoryFile(request.task.reference_source));
    std::vector<int> descriptors = {task.get(), request.library_fd};
    UniqueFd source;
    if (request.kind == CandidateKind::kKernelBenchPython) {
      ASSIGN_OR_RETURN(source, SealedMemoryFile(request.source));
      descriptors[1] = source.get();
      descriptors.insert(descriptors.end(), request.extension_fds.begin(), request.extension_fds.end());
    }
    using Message = service::Judge;
    const bool is_native = request.kind == CandidateKind::kNative;
    auto fields = Make<Message>({{Message::key, request.task.key},
                                 {Message::kind, is_native ? Message::kNative : Message::kPython},
                                 {Message::limits, request.limits},
                                 {Message::timing, request.timing},
                                 {Message::verify_only, request.verify_only},
                                 {Message::another_follows, request.another_follows},
                                 {Message::with_blas, request.with_blas},
                                 {Message::with_torch, request.with_torch},
                                 {Message::with_streams, request.with_streams}});
    if (request.seed) fields[Message::seed.name] = *request.seed;
    ASSIGN_OR_RETURN(const Answer answer, Ask(std::move(fields), descriptors, deadline, Late::kBreaks));
    if (!Is<service::Judged>(answer.packet.fields)) return AsInfrastructure(TakeFailure(answer));
    {
      absl::MutexLock lock(&mutex_);
      num_late_answers_ = 0;
    }
    return ReadMeasurement(answer.packet);
  }

  absl::StatusOr<std::vector<ExtensionRecord>> RecordExtensions(const TaskSource& task,
                                                                const std::string& source,
                                                                absl::Time deadline) override {
    ASSIGN_OR_RETURN(const UniqueFd task_fd, SealedMemoryFile(task.reference_source));
    ASSIGN_OR_RETURN(const UniqueFd source_fd, SealedMemoryFile(source));
    const absl::StatusOr<Answer> answer =
        Ask(Make<service::Record>({{service::Record::key, task.key}}), {task_fd.get(), source_fd.get()},
            deadline, Late::kFails, WithoutReferee::kFails);
    RETURN_IF_ERROR(answer.status());
    const Packet& packet = answer->packet;
    if (!Is<service::Recorded>(packet.fields)) return StatusOfFailure(packet);
    if (packet.descriptors.size() != 1) return absl::InternalError("the referee's answer has no list");
    ASSIGN_OR_RETURN(const std::string text,
                     ReadMemoryFile(packet.descriptors[0].get(), service::Recorded::kRecordingBytesMax));
    return ExtensionsFromJson(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false),
                              Read(packet.fields, service::Recorded::own_kernels));
  }

  absl::Status Revive() override {
    absl::MutexLock lock(&mutex_);
    num_restarts_ = 0;  // who asks for it counts by itself
    return RunningLocked().status();
  }

  absl::Status Calibrate() override {
    ASSIGN_OR_RETURN(const Answer answer,
                     Ask(Make<service::Calibrate>(), {}, absl::Now() + kStartTimeout, Late::kBreaks));
    if (!Is<service::Calibrated>(answer.packet.fields)) return StatusOfFailure(answer.packet);
    absl::MutexLock lock(&mutex_);
    facts_ = Read(answer.packet.fields, service::Calibrated::facts).get<RefereeFacts>();
    return absl::OkStatus();
  }

  void Prefetch(const TaskSource& task) override {
    std::shared_ptr<RefereeLink> link;
    {
      absl::MutexLock lock(&mutex_);
      link = link_;
    }
    const absl::StatusOr<UniqueFd> source = SealedMemoryFile(task.reference_source);
    if (link == nullptr || !source.ok()) return;
    (void)link->Tell(Make<service::Prefetch>({{service::Prefetch::key, task.key}}), {source->get()});
  }

  RefereeFacts facts() const override {
    absl::MutexLock lock(&mutex_);
    return facts_;
  }

 private:
  // And who gave it.
  struct Answer {
    Packet packet;
    std::shared_ptr<RefereeLink> link;
  };

  absl::Status ConnectLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Packet started;
    ASSIGN_OR_RETURN(std::shared_ptr<RefereeLink> link,
                     RefereeLink::Open(options_.bin_directory / "warpsmith-referee", StartMessage(options_),
                                       absl::Now() + kStartTimeout, &started));
    if (!Is<service::Started>(started.fields)) return StatusOfFailure(started);
    facts_ = Read(started.fields, service::Started::facts).get<RefereeFacts>();
    link_ = std::move(link);
    return absl::OkStatus();
  }

  // Of a judgement. After some failures the referee ends, and may not have ended yet: whoever asks
  // next needs another. So does who is told again and again that time is up: something in there may
  // hang, in the driver of a GPU say. Recordings tell nothing of that, for they wait for tasks.
  absl::Status TakeFailure(const Answer& answer) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Status failure = StatusOfFailure(answer.packet);
    absl::MutexLock lock(&mutex_);
    num_late_answers_ = absl::IsDeadlineExceeded(failure) ? num_late_answers_ + 1 : 0;
    const bool hangs = num_late_answers_ == kLateAnswersMax;
    if (hangs) num_late_answers_ = 0;
    if (absl::IsUnavailable(failure) || absl::IsInternal(failure) || hangs) answer.link->Break(failure);
    return failure;
  }

  enum class WithoutReferee { kStarts, kFails };

  bool IsRunning() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return link_ != nullptr && link_->status().ok();
  }

  // A referee that runs: another one where the last has ended.
  absl::StatusOr<std::shared_ptr<RefereeLink>> RunningLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (IsRunning()) return link_;
    if (num_restarts_ >= options_.num_restarts_max) {
      return absl::UnavailableError(
          absl::StrCat("the referee died ", num_restarts_, " times in a row; it is given up"));
    }
    ++num_restarts_;
    LogWarning(
        absl::StrCat("starting the referee of lane ", facts_.lane_cores, " again, restart ", num_restarts_));
    link_ = nullptr;  // ends the last one, if nobody asks it any more
    RETURN_IF_ERROR(ConnectLocked());
    return link_;
  }

  absl::StatusOr<Answer> Ask(const nlohmann::json& question, const std::vector<int>& descriptors,
                             absl::Time deadline, Late late, WithoutReferee without = WithoutReferee::kStarts)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    for (bool is_first = true;; is_first = false) {
      std::shared_ptr<RefereeLink> link;
      {
        absl::MutexLock lock(&mutex_);
        if (without == WithoutReferee::kFails && !IsRunning())
          return absl::UnavailableError("no referee runs: a judgement starts another, or Revive()");
        ASSIGN_OR_RETURN(link, RunningLocked());
      }
      bool sent = false;
      absl::StatusOr<Packet> packet = link->Ask(question, descriptors, deadline, late, &sent);
      // It died in idle time: nothing was asked yet, so another may be.
      if (is_first && !sent && absl::IsUnavailable(packet.status())) continue;
      RETURN_IF_ERROR(packet.status());
      absl::MutexLock lock(&mutex_);
      num_restarts_ = 0;
      return Answer{*std::move(packet), std::move(link)};
    }
  }

  // INVALID_ARGUMENT means the candidate's fault to our callers, and a failed judgement is never that.
  static absl::Status AsInfrastructure(const absl::Status& status) {
    return absl::IsInvalidArgument(status) ? absl::InternalError(status.message()) : status;
  }

  const RefereeOptions options_;
  mutable absl::Mutex mutex_;
  int num_late_answers_ ABSL_GUARDED_BY(mutex_) = 0;  // to Judge(), in a row
  RefereeFacts facts_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RefereeLink> link_ ABSL_GUARDED_BY(mutex_);
  int num_restarts_ ABSL_GUARDED_BY(mutex_) = 0;
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
  if (status == 0 && list.is_array()) return list.get<std::vector<cuda::GpuFacts>>();
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
