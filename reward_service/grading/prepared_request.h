// A request that passed the door: checked, its program found and named by its content.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_PREPARED_REQUEST_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_PREPARED_REQUEST_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "reward_service/grading/service_abilities.h"
#include "reward_service/grading/tenants.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {

// Immutable once made; shared between the door, the queue and the caches.
struct PreparedRequest {
  v1::GradeRequest request;
  // What it is graded on: where the task does not say, the service has chosen.
  v1::Device device = v1::DEVICE_CPU;
  // Whose it is; null: nobody's, without quota.
  std::shared_ptr<const Tenant> tenant;
  // The program, and the same normalised. Empty when the answer has none.
  std::string source;
  std::string source_sha256;
  // Libraries may do products of matrices and convolutions. A native CUDA program has them where it names cuBLAS or
  // cuDNN and its task's allowed_libraries has "blas" or "torch": both are built into it and are in its jail. A Python
  // program has them where its task has "blas" and not "torch".
  bool with_blas = false;
  // All libraries may do a Python program's work: its task's allowed_libraries has "torch".
  bool with_torch = false;
  // A program for a GPU that names what makes kernels run beside each other: streams, graphs, contexts.
  bool with_streams = false;
  // SHA-256 of everything but the request's id and priority.
  std::string content_sha256;
  // SHA-256 of the reference: the oracle's name.
  std::string task_key;
  // SHA-256 of what a measurement depends on: reference, language, normalised program, libraries, device and its
  // environment.
  // Neither formula nor skill: both are applied to a measurement afterwards.
  std::string measurement_key;
  // SHA-256 of what an LLM judge's opinion depends on: the measurement, skill, advice and previous program,
  // and the libraries that are allowed.
  std::string opinion_key;

  // An id means something to its tenant alone.
  std::string identity_key() const;
  // The program is compiled to a library of its own, and no Python runs it.
  bool is_native() const;
  // NORMAL where the request does not say.
  int priority() const;
};

// INVALID_ARGUMENT, saying what to change, for a request that cannot be graded as it stands: no or too long
// an id, no reference, no candidate, an unknown formula, anything over its limit. And as ChooseDevice, which alone
// decides what this service does not grade.
absl::StatusOr<PreparedRequest> PrepareRequest(const v1::GradeRequest& request,
                                               const ServiceAbilities& abilities);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_PREPARED_REQUEST_H_
