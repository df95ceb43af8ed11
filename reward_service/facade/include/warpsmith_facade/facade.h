// What answers use of Torch's C++ API and of pybind11, in place of torch/extension.h.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_FACADE_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_FACADE_H_

#include "warpsmith_facade/binder.h"
#include "warpsmith_facade/types.h"

WARPSMITH_FACADE_BIND_TENSOR(::warpsmith_facade::Tensor)

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_FACADE_H_
