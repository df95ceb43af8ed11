// Torch's real tensors and operators without the rest of torch/extension.h: no autograd, no modules, no
// pybind11.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_LIGHT_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_LIGHT_H_

#include "warpsmith_facade/binder.h"
#include "warpsmith_facade/light_types.h"

WARPSMITH_FACADE_BIND_TENSOR(::at::Tensor)

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_LIGHT_H_
