// The GPUs that a service is to judge on, as reward_service.gpus names them.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_GPU_CHOICE_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_GPU_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

struct GpuChoice {
  bool wanted = true;
  bool required = false;     // the service does not start without one that works
  std::vector<int> indices;  // as CUDA counts; empty: all
};

// Returns the choice of "all", "required", "none" or "cuda:N", "cuda:N,M", which require those. INVALID_ARGUMENT for
// any other text, and for an index that is named twice.
absl::StatusOr<GpuChoice> ParseGpuChoice(const std::string& text);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_GPU_CHOICE_H_
