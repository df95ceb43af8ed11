#include "rollout_workers/request_check.h"

#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "rollout_workers/wire.h"

namespace warpsmith {
namespace {

constexpr size_t kRequestIdBytesMax = 128;

absl::Status CheckTaskIds(const v1::GenerateGroupsRequest& request) {
  std::set<std::string_view> ids;
  for (const v1::Task& task : request.tasks()) {
    if (task.id().empty()) return absl::InvalidArgumentError("A task has no id; give each its own");
    if (!ids.insert(task.id()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Task \"", Escape(task.id(), 128), "\" is there twice; its samples would be equal: name it once"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const v1::GenerateGroupsRequest& request, const GenerateLimits& limits) {
  if (request.request_id().empty() || request.request_id().size() > kRequestIdBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("request_id has ", request.request_id().size(),
                                                   " bytes; give 1 to ", kRequestIdBytesMax));
  }
  if (request.tasks_size() < 1 || request.tasks_size() > limits.tasks_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("The request has ", request.tasks_size(), " tasks; give 1 to ", limits.tasks_max));
  }
  if (request.num_samples() < 1 || request.num_samples() > limits.num_samples_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_samples is ", request.num_samples(), "; give 1 to ", limits.num_samples_max));
  }
  if (absl::Status status = CheckTaskIds(request); !status.ok()) return status;
  return Validate(SamplingFromProto(request.sampling()));
}

std::string SettingsDigest(const v1::GenerateGroupsRequest& request) {
  v1::GenerateGroupsRequest content;
  *content.mutable_sampling() = request.sampling();
  content.set_num_samples(request.num_samples());
  content.set_seed(request.seed());
  content.set_policy_version(request.policy_version());
  content.set_formula(request.formula());
  return Sha256Hex(content.SerializeAsString());  // no map fields: the same content gives the same bytes
}

}  // namespace warpsmith
