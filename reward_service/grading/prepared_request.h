// A request that passed the door: checked, its program found and named by its content.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_PREPARED_REQUEST_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_PREPARED_REQUEST_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "reward_service/grading/tenants.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {

struct RequestLimits {
  int64_t answer_bytes_max = int64_t{1} << 20;
  int64_t reference_bytes_max = int64_t{1} << 20;
  int64_t program_bytes_max = int64_t{256} << 10;
};

// Immutable once made; shared between the door, the queue and the caches.
struct PreparedRequest {
  v1::GradeRequest request;
  // Whose it is; null: nobody's, without quota.
  std::shared_ptr<const Tenant> tenant;
  // The program, and the same normalised. Empty when the answer has none.
  std::string source;
  std::string source_sha256;
  // SHA-256 of everything but the request's id and priority.
  std::string content_sha256;
  // SHA-256 of the reference: the oracle's name.
  std::string task_key;
  // SHA-256 of what a measurement depends on: reference, language, normalised program, environment. Neither
  // formula nor skill: both are applied to a measurement afterwards.
  std::string measurement_key;
  // SHA-256 of what an LLM judge's opinion depends on: the measurement, skill, advice and previous program,
  // and the libraries that are allowed.
  std::string opinion_key;
};

// INVALID_ARGUMENT, saying what to change, for a request that cannot be graded as it stands: no or too long
// an id, no reference, no candidate, a language that this service does not grade, an unknown formula,
// anything over its limit. `environment` stands for machine and toolchain.
absl::StatusOr<PreparedRequest> PrepareRequest(const v1::GradeRequest& request, const RequestLimits& limits,
                                               const std::string& environment);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_PREPARED_REQUEST_H_
