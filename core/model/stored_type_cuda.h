// The C++ type of what a device stores.
#ifndef WARPSMITH_CORE_MODEL_STORED_TYPE_CUDA_H_
#define WARPSMITH_CORE_MODEL_STORED_TYPE_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

template <typename T>
inline constexpr DeviceDtype kDtypeOf = DeviceDtype::kFloat32;
template <>
inline constexpr DeviceDtype kDtypeOf<__nv_bfloat16> = DeviceDtype::kBfloat16;
template <>
inline constexpr DeviceDtype kDtypeOf<__half> = DeviceDtype::kFloat16;

// visit(std::type_identity<T>()) with the T of `dtype`.
template <typename Visit>
auto VisitStoredType(DeviceDtype dtype, Visit visit) {
  switch (dtype) {
    case DeviceDtype::kBfloat16:
      return visit(std::type_identity<__nv_bfloat16>());
    case DeviceDtype::kFloat16:
      return visit(std::type_identity<__half>());
    case DeviceDtype::kFloat32:
      break;
  }
  return visit(std::type_identity<float>());
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_STORED_TYPE_CUDA_H_
