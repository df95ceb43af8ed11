// Torch's real tensors and operators without the rest of torch/types.h: no autograd, no modules.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_LIGHT_TYPES_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_LIGHT_TYPES_H_

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "warpsmith_facade/standard.h"

namespace torch {
using namespace at;
using at::Tensor;
using NoGradGuard = c10::NoGradGuard;
constexpr auto kU8 = at::kByte, kI8 = at::kChar, kI16 = at::kShort, kI32 = at::kInt, kI64 = at::kLong,
               kF16 = at::kHalf, kF32 = at::kFloat, kF64 = at::kDouble;
constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt,
               kInt64 = at::kLong, kFloat16 = at::kHalf, kFloat32 = at::kFloat, kFloat64 = at::kDouble;
inline at::TensorOptions dtype(at::ScalarType type) { return at::TensorOptions().dtype(type); }
inline at::TensorOptions dtype(caffe2::TypeMeta type) { return at::TensorOptions().dtype(type); }
}  // namespace torch

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_LIGHT_TYPES_H_
