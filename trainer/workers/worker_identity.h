// Describes a rollout worker as the trainer needs to know it, and checks that it agrees with the trainer.
#ifndef WARPSMITH_TRAINER_WORKERS_WORKER_IDENTITY_H_
#define WARPSMITH_TRAINER_WORKERS_WORKER_IDENTITY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace warpsmith {

struct WorkerIdentity {
  std::string address;
  std::string layout_sha256;
  std::string prompts_sha256;
  std::string formula;        // of rewards: that of the options, or its reward service's default
  std::string weights_dtype;  // that it computes with
  // FieldsOf (core/model/model_fields.h), and the tokens that end an answer, in any order. Empty: an older
  // worker does not tell.
  std::map<std::string, std::string> model_fields;
  std::vector<int32_t> stop_token_ids;
  int64_t context_tokens_max = 0;  // of prompt and answer together; 0: an older worker does not tell
  // HostId where it takes weights from the memory of a GPU; empty where it does not.
  std::string cuda_memory_host;
};

// Checks that `worker` computes the logits, reads the prompts and ends the answers of `trainer`, which needs neither
// address nor formula nor dtype. FAILED_PRECONDITION naming the worker and what differs, a field with both values.
absl::Status CheckAgrees(const WorkerIdentity& worker, const WorkerIdentity& trainer);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_WORKER_IDENTITY_H_
