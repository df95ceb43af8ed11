// Which code computes a model. Every caller names it; where it does not fit, the model is refused. Neither
// backend ever stands in for the other.
#ifndef WARPSMITH_CORE_MODEL_BACKEND_H_
#define WARPSMITH_CORE_MODEL_BACKEND_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/status.h"
#include "core/model/model_config.h"

namespace warpsmith {

enum class Backend {
  kKernels,    // core/kernels, on a CPU: what trainer and worker run
  kOperators,  // operator_model.h, on any device: slow; what the kernels are judged by
};

// What a model computes in, and where.
struct Placement {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::Device(at::kCPU);  // a GPU by its index

  bool operator==(const Placement&) const = default;
};

// What the kernels train and decode in.
inline const std::vector<at::ScalarType> kTrainingKernelDtypes = {at::kFloat, at::kDouble};
inline const std::vector<at::ScalarType> kDecodingKernelDtypes = {at::kFloat};

// OK if `backend` computes `config` at `placement`, where kernels exist for `kernel_dtypes`. INVALID_ARGUMENT
// if `config` is not valid; UNIMPLEMENTED, naming what is asked for and what there is, if the backend does
// not compute in that dtype or on that device.
absl::Status CheckBackend(const ModelConfig& config, Backend backend, Placement placement,
                          const std::vector<at::ScalarType>& kernel_dtypes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_BACKEND_H_
