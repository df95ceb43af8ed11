// What a device stores weights, activations and pages in. Sums are made in float32 either way.
#ifndef WARPSMITH_CORE_KERNELS_DEVICE_DTYPE_H_
#define WARPSMITH_CORE_KERNELS_DEVICE_DTYPE_H_

#include <cstdint>

#include "core/kernels/bfloat16.h"

namespace warpsmith {

enum class DeviceDtype { kBfloat16, kFloat32 };

constexpr int64_t ElementBytes(DeviceDtype dtype) { return dtype == DeviceDtype::kBfloat16 ? 2 : 4; }

// As PyTorch calls it.
constexpr const char* DtypeName(DeviceDtype dtype) {
  return dtype == DeviceDtype::kBfloat16 ? "bfloat16" : "float32";
}

// What comes back of a float32 that was stored.
inline float RoundToDtype(float value, DeviceDtype dtype) {
  return dtype == DeviceDtype::kBfloat16 ? RoundToBfloat16(value) : value;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_DEVICE_DTYPE_H_
