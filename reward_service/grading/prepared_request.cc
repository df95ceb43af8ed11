#include "reward_service/grading/prepared_request.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "reward_service/program/candidate_language.h"
#include "reward_service/program/extraction.h"
#include "reward_service/scoring/formulas.h"

namespace warpsmith {
namespace {

constexpr size_t kIdBytesMax = 128;

absl::Status CheckSize(const char* name, const std::string& text, int64_t bytes_max) {
  if (static_cast<int64_t>(text.size()) <= bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", text.size(), " bytes; this service takes at most ", bytes_max));
}

absl::Status CheckIds(const v1::GradeRequest& request) {
  if (request.request_id().empty()) return absl::InvalidArgumentError("request_id is empty: choose one");
  if (request.request_id().size() > kIdBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id has ", request.request_id().size(), " bytes, at most ", kIdBytesMax));
  }
  return absl::OkStatus();
}

absl::Status CheckTask(const v1::Task& task, const RequestLimits& limits) {
  if (task.reference_source().empty()) {
    return absl::InvalidArgumentError("task.reference_source is empty: send the KernelBench file itself");
  }
  RETURN_IF_ERROR(CheckSize("task.reference_source", task.reference_source(), limits.reference_bytes_max));
  return CheckSize("task.previous_source", task.previous_source(), limits.answer_bytes_max);
}

absl::Status CheckCandidate(const v1::Candidate& candidate, const RequestLimits& limits) {
  if (!candidate.has_answer() && !candidate.has_source()) {
    return absl::InvalidArgumentError("candidate has neither answer nor source");
  }
  RETURN_IF_ERROR(CheckSize("candidate.answer", candidate.answer(), limits.answer_bytes_max));
  return CheckSize("candidate.source", candidate.source(), limits.answer_bytes_max);
}

std::string_view FindProgram(const v1::Candidate& candidate) {
  if (candidate.has_source()) return candidate.source();
  return ExtractProgram(candidate.answer()).value_or(std::string_view());
}

// Whoever hides the names has its streams share one queue, and gains nothing by them.
constexpr const char* kWaysToOverlap[] = {
    "StreamCreate", "StreamPerThread", "StreamFromPool", "PER_THREAD_DEFAULT_STREAM",
    "cuda.Stream",  "torch.Stream",    "import Stream",  "default-stream",
    "Graph",        "graph",           "CtxCreate"};

std::string DigestOf(const v1::GradeRequest& request) {
  v1::GradeRequest content = request;
  content.clear_request_id();
  content.clear_priority();
  return Sha256Hex(content.SerializeAsString());
}

bool Allows(const PreparedRequest& prepared, std::string_view library) {
  const auto& allowed = prepared.request.task().allowed_libraries();
  return std::find(allowed.begin(), allowed.end(), library) != allowed.end();
}

bool WantsBlas(const PreparedRequest& prepared) {
  if (!prepared.is_native()) return Allows(prepared, "blas") && !Allows(prepared, "torch");
  if (prepared.device != v1::DEVICE_CUDA) return false;
  if (!Allows(prepared, "blas") && !Allows(prepared, "torch")) return false;
  // A program that hides the names finds the libraries withheld.
  return prepared.source.find("cublas") != std::string::npos ||
         prepared.source.find("cudnn") != std::string::npos;
}

// `normalised`: programs that share a measurement are measured alike.
bool MayOverlapKernels(const PreparedRequest& prepared, std::string_view normalised) {
  if (prepared.device != v1::DEVICE_CUDA) return false;
  return std::any_of(std::begin(kWaysToOverlap), std::end(kWaysToOverlap),
                     [&](const char* name) { return normalised.find(name) != normalised.npos; });
}

std::string MeasurementKey(const PreparedRequest& prepared, std::string_view normalised,
                           const std::string& environment) {
  return Sha256Hex(absl::StrCat(prepared.task_key, "\n", prepared.request.candidate().language(), "\n",
                                prepared.device, "\n", environment, "\n", prepared.with_blas ? "blas\n" : "",
                                prepared.with_torch ? "torch\n" : "",
                                absl::string_view(normalised.data(), normalised.size())));
}

std::string OpinionKey(const std::string& measurement_key, const v1::Task& task) {
  v1::Task asked;
  asked.set_skill(task.skill());
  *asked.mutable_allowed_libraries() = task.allowed_libraries();
  asked.set_previous_source(task.previous_source());
  asked.mutable_feedback()->set_advice(task.feedback().advice());
  return Sha256Hex(absl::StrCat(measurement_key, "\n", asked.SerializeAsString()));
}

}  // namespace

std::string PreparedRequest::identity_key() const {
  return absl::StrCat(tenant == nullptr ? "" : tenant->name, "\n", request.request_id());
}

bool PreparedRequest::is_native() const { return LanguageOf(request.candidate().language()).is_native; }

int PreparedRequest::priority() const {
  return request.priority() == v1::PRIORITY_UNSPECIFIED ? v1::PRIORITY_NORMAL : request.priority();
}

absl::StatusOr<PreparedRequest> PrepareRequest(const v1::GradeRequest& request,
                                               const ServiceAbilities& abilities) {
  RETURN_IF_ERROR(CheckIds(request));
  RETURN_IF_ERROR(CheckTask(request.task(), abilities.limits));
  PreparedRequest prepared;
  ASSIGN_OR_RETURN(prepared.device,
                   ChooseDevice(request.candidate().language(), request.task().device(), abilities));
  RETURN_IF_ERROR(CheckCandidate(request.candidate(), abilities.limits));
  RETURN_IF_ERROR(ComputeReward(request.formula(), {}).status());
  prepared.request = request;
  prepared.source = std::string(FindProgram(request.candidate()));
  const std::string normalised = LanguageOf(request.candidate().language()).normalise(prepared.source);
  prepared.source_sha256 = Sha256Hex(normalised);
  prepared.with_blas = WantsBlas(prepared);
  prepared.with_torch = !prepared.is_native() && Allows(prepared, "torch");
  prepared.with_streams = MayOverlapKernels(prepared, normalised);
  prepared.content_sha256 = DigestOf(request);
  prepared.task_key = Sha256Hex(request.task().reference_source());
  prepared.measurement_key = MeasurementKey(prepared, normalised, abilities.devices.at(prepared.device));
  prepared.opinion_key = OpinionKey(prepared.measurement_key, request.task());
  return prepared;
}

}  // namespace warpsmith
