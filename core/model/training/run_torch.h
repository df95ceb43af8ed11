// Runs LibTorch's functions and returns what they throw as a status.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_RUN_TORCH_H_
#define WARPSMITH_CORE_MODEL_TRAINING_RUN_TORCH_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace warpsmith {

// Runs `work`, with a graph where `keeps_graph` and in inference otherwise. Errors begin with `what`:
// RESOURCE_EXHAUSTED where a GPU's memory lacks, INTERNAL for all else that LibTorch throws.
absl::Status RunTorch(const char* what, bool keeps_graph, absl::FunctionRef<void()> work);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_RUN_TORCH_H_
