// What answers use of Torch's C++ API, in place of torch/types.h: declarations that compile in a fraction of a
// second. Whatever is missing here does not compile, and the program goes to the next tier.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_TYPES_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_TYPES_H_

#include "warpsmith_facade/cuda.h"
#include "warpsmith_facade/dispatch.h"
#include "warpsmith_facade/functions.h"
#include "warpsmith_facade/standard.h"

namespace c10 {
using namespace ::warpsmith_facade;
namespace cuda {
using namespace ::warpsmith_facade::cuda;
}
}  // namespace c10
namespace at {
using namespace ::warpsmith_facade;
namespace cuda {
using namespace ::warpsmith_facade::cuda;
}
}  // namespace at
namespace torch {
using namespace ::warpsmith_facade;
namespace cuda {
using namespace ::warpsmith_facade::cuda;
}
// at:: has none of these names for the sizes that torch:: has.
constexpr ScalarType kU8 = ScalarType::Byte, kI8 = ScalarType::Char, kI16 = ScalarType::Short,
                     kI32 = ScalarType::Int, kI64 = ScalarType::Long, kF16 = ScalarType::Half,
                     kF32 = ScalarType::Float, kF64 = ScalarType::Double;
}  // namespace torch

// Numbers of 16 bits in the standard library's templates.
namespace std {
template <>
class numeric_limits<::warpsmith_facade::Half> : public numeric_limits<float> {
 public:
  static ::warpsmith_facade::Half max() { return 65504.0f; }
  static ::warpsmith_facade::Half lowest() { return -65504.0f; }
  static ::warpsmith_facade::Half min() { return 0x1p-14f; }
  static ::warpsmith_facade::Half epsilon() { return 0x1p-10f; }
  static ::warpsmith_facade::Half infinity() { return numeric_limits<float>::infinity(); }
};
template <>
class numeric_limits<::warpsmith_facade::BFloat16> : public numeric_limits<float> {
 public:
  static ::warpsmith_facade::BFloat16 max() { return 0x1.FEp127f; }
  static ::warpsmith_facade::BFloat16 lowest() { return -0x1.FEp127f; }
  static ::warpsmith_facade::BFloat16 min() { return 0x1p-126f; }
  static ::warpsmith_facade::BFloat16 epsilon() { return 0x1p-7f; }
  static ::warpsmith_facade::BFloat16 infinity() { return numeric_limits<float>::infinity(); }
};
}  // namespace std

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_TYPES_H_
