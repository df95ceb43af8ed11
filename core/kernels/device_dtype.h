// What a device stores weights, activations and pages in. Sums are made in float32 in each case.
#ifndef WARPSMITH_CORE_KERNELS_DEVICE_DTYPE_H_
#define WARPSMITH_CORE_KERNELS_DEVICE_DTYPE_H_

#include <cstdint>

#include "core/kernels/bfloat16.h"

namespace warpsmith {

enum class DeviceDtype { kBfloat16, kFloat16, kFloat32 };

constexpr int64_t ElementBytes(DeviceDtype dtype) { return dtype == DeviceDtype::kFloat32 ? 4 : 2; }

// As PyTorch calls it.
constexpr const char* DtypeName(DeviceDtype dtype) {
  if (dtype == DeviceDtype::kFloat32) return "float32";
  return dtype == DeviceDtype::kFloat16 ? "float16" : "bfloat16";
}

// What comes back of a float32 that was stored.
inline float RoundToDtype(float value, DeviceDtype dtype) {
  if (dtype == DeviceDtype::kFloat32) return value;
  return dtype == DeviceDtype::kFloat16 ? FloatOfFloat16(Float16Bits(value)) : RoundToBfloat16(value);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_DEVICE_DTYPE_H_
