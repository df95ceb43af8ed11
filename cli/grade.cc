#include "cli/grade.h"

#include <google/protobuf/util/json_util.h>
#include <sys/prctl.h>

#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/grade_text.h"
#include "cli/scratch_directory.h"
#include "cli/server_health.h"
#include "cli/supervisor.h"
#include "cli/task_file.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"
#include "core/rpc/call_failure.h"
#include "core/rpc/channel.h"
#include "core/rpc/server_address.h"
#include "core/rpc/status.h"
#include "proto/device_names.h"
#include "proto/language_names.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {
namespace {

constexpr int64_t kTaskBytesMax = 4 << 20;
constexpr int64_t kCandidateBytesMax = 16 << 20;
// How long a signal may go unnoticed during a call.
constexpr absl::Duration kSignalSlice = absl::Milliseconds(200);

absl::StatusOr<v1::CandidateLanguage> ParseLanguage(const std::string& name) {
  const v1::CandidateLanguage language = LanguageOfName(name);
  if (language != v1::CANDIDATE_LANGUAGE_UNSPECIFIED) return language;
  return absl::InvalidArgumentError(absl::StrCat("unknown language '", name, "': use ", AllLanguageNames()));
}

absl::StatusOr<v1::Device> ParseDevice(const std::string& name) {
  const v1::Device device = DeviceOfName(name);
  if (device != v1::DEVICE_UNSPECIFIED) return device;
  return absl::InvalidArgumentError(absl::StrCat("unknown device '", name, "': use ", AllDeviceNames()));
}

// A file without the byte order mark, which Python does not take within a text.
absl::StatusOr<std::string> ReadText(const std::filesystem::path& path, int64_t bytes_max) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, bytes_max));
  return std::string(WithoutByteOrderMark(text));
}

absl::StatusOr<v1::Task> ReadTask(const std::filesystem::path& path, v1::CandidateLanguage language) {
  if (const auto address = ParseTaskAddress(path.string())) return ReadTaskLine(*address, language);
  ASSIGN_OR_RETURN(const std::string text, ReadText(path, kTaskBytesMax));
  v1::Task task;
  if (path.extension() == ".json") {
    if (const auto parsed = google::protobuf::util::JsonStringToMessage(text, &task); !parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), " is no Task: ", parsed.ToString()));
    }
    return task;
  }
  task.set_id(path.stem().string());
  task.set_skill(v1::SKILL_GENERATE);
  task.set_reference_source(text);
  task.set_language(language);
  return task;
}

// A server of the reward service, for as long as this lives.
class PrivateService {
 public:
  static absl::StatusOr<std::unique_ptr<PrivateService>> Start(StopSignals* signals) {
    ASSIGN_OR_RETURN(ScratchDirectory scratch, ScratchDirectory::Create());
    auto service = std::unique_ptr<PrivateService>(new PrivateService(std::move(scratch), signals));
    RETURN_IF_ERROR(service->supervisor_.StartServer(service->spec_));
    return service;
  }

  const std::string& address() const { return spec_.address; }

 private:
  PrivateService(ScratchDirectory scratch, StopSignals* signals)
      : scratch_(std::move(scratch)), supervisor_({.is_serving = IsServing}, signals) {
    spec_.address = absl::StrCat("unix:", (scratch_.path() / "reward.sock").string());
    spec_.command = {
        .name = "reward_service",
        .arguments = {(ExecutableDirectory() / "warpsmith-reward").string(), "--address", spec_.address},
        .log_path = scratch_.path() / "reward_service.log"};
  }

  ScratchDirectory scratch_;
  ServerSpec spec_;
  Supervisor supervisor_;
};

// Calls Grade, giving up when a signal comes.
absl::StatusOr<v1::Grade> CallService(const v1::GradeRequest& request,
                                      const std::shared_ptr<grpc::Channel>& channel, absl::Duration timeout,
                                      StopSignals* signals) {
  const std::unique_ptr<v1::RewardService::Stub> stub = v1::RewardService::NewStub(channel);
  grpc::ClientContext context;
  SetTimeout(&context, timeout);
  grpc::CompletionQueue queue;
  v1::GradeResponse response;
  grpc::Status end;
  const auto call = stub->AsyncGrade(&context, request, &queue);
  call->Finish(&response, &end, nullptr);
  void* tag = nullptr;
  bool ok = false;
  // Ends: the call has a deadline.
  while (queue.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + kSignalSlice)) ==
         grpc::CompletionQueue::TIMEOUT) {
    if (signals->Await(absl::ZeroDuration()).has_value()) context.TryCancel();
  }
  RETURN_IF_ERROR(FromGrpcStatus(end));
  return std::move(*response.mutable_grade());
}

absl::StatusOr<v1::Grade> GradeFiles(const GradeOptions& options, StopSignals* signals) {
  if (!options.address.empty()) RETURN_IF_ERROR(CheckClientAddress(options.address));
  ASSIGN_OR_RETURN(const v1::GradeRequest request, MakeGradeRequest(options));
  if (!options.address.empty()) {
    ASSIGN_OR_RETURN(const ChannelOptions channel_options, ReadChannelFiles(options.channel));
    const std::shared_ptr<grpc::Channel> channel = CreateChannel(options.address, channel_options);
    absl::StatusOr<v1::Grade> grade = CallService(request, channel, options.timeout, signals);
    if (grade.ok()) return grade;
    const std::string way_out =
        absl::StrCat("start `warpsmith-reward --address ", options.address, "`, or leave out --address");
    return ExplainCallFailure(grade.status(), channel,
                              {.address = options.address,
                               .kind = "reward service",
                               .way_out = way_out,
                               .other_service = "warpsmith.v1.RolloutService",
                               .other_kind = "rollout worker"});
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  ASSIGN_OR_RETURN(const std::unique_ptr<PrivateService> service, PrivateService::Start(signals));
  return CallService(request, CreateChannel(service->address()), options.timeout, signals);
}

// Protobuf's JSON mapping, with fields of value zero spelt out.
std::string GradeJson(const v1::Grade& grade) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(grade, &json, options);
  return printed.ok() ? json : "{}\n";
}

}  // namespace

absl::StatusOr<v1::GradeRequest> MakeGradeRequest(const GradeOptions& options) {
  ASSIGN_OR_RETURN(const v1::CandidateLanguage language, ParseLanguage(options.language));
  v1::GradeRequest request;
  ASSIGN_OR_RETURN(*request.mutable_task(), ReadTask(options.task, language));
  if (!options.device.empty()) {
    ASSIGN_OR_RETURN(const v1::Device device, ParseDevice(options.device));
    request.mutable_task()->set_device(device);
  }
  ASSIGN_OR_RETURN(std::string text, ReadText(options.candidate, kCandidateBytesMax));
  if (!IsValidUtf8(text))
    return absl::InvalidArgumentError(absl::StrCat(options.candidate.string(), " is not UTF-8 text"));
  request.mutable_candidate()->set_language(language);
  const bool is_answer = options.candidate.extension() == ".md" || options.candidate.extension() == ".txt";
  (is_answer ? *request.mutable_candidate()->mutable_answer()
             : *request.mutable_candidate()->mutable_source()) = std::move(text);
  request.set_formula(options.formula);
  request.set_request_id(Sha256Hex(request.SerializeAsString()));
  return request;
}

int RunGrade(const GradeOptions& options, StopSignals* signals) {
  const absl::StatusOr<v1::Grade> grade = GradeFiles(options, signals);
  if (!grade.ok()) {
    LogError(std::string(grade.status().message()));
    return 1;
  }
  std::cout << (options.format == "json" ? GradeJson(*grade) : GradeText(*grade)) << std::flush;
  return grade->verdict() == v1::VERDICT_UNSCORABLE ? 3 : 0;
}

}  // namespace warpsmith
