#include "reward_service/compiler/halves/half_headers.h"

#include "absl/algorithm/container.h"

namespace warpsmith {
namespace {

// NVRTC knows by itself what kernels use of these.
constexpr std::string_view kOfHost[] = {
    // C, by both names.
    "assert.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring",
    // C++.
    "algorithm", "array", "atomic", "functional", "initializer_list", "iostream", "iterator", "limits", "map",
    "memory", "mutex", "numeric", "string", "tuple", "type_traits", "unordered_map", "utility", "vector",
    // CUDA and DLPack.
    "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "dlpack/dlpack.h",
    "vector_types.h"};
constexpr std::string_view kOfDevice[] = {"mma.h"};
constexpr std::string_view kOfBoth[] = {"cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h", "math_constants.h"};
// What of them the device's half has a part of (halves/).
constexpr std::string_view kStdint[] = {"stdint.h", "cstdint", "dlpack/dlpack.h"};
constexpr std::string_view kFloat[] = {"float.h", "cfloat"};

}  // namespace

std::optional<HalfHeader> FindHalfHeader(std::string_view name) {
  if (absl::c_linear_search(kStdint, name))
    return HalfHeader{.is_hosts = true, .device_line = "#include \"native_stdint.h\""};
  if (absl::c_linear_search(kFloat, name))
    return HalfHeader{.is_hosts = true, .device_line = "#include \"native_float.h\""};
  if (absl::c_linear_search(kOfHost, name)) return HalfHeader{.is_hosts = true};
  if (absl::c_linear_search(kOfDevice, name)) return HalfHeader{.is_devices = true};
  if (absl::c_linear_search(kOfBoth, name)) return HalfHeader{.is_hosts = true, .is_devices = true};
  return std::nullopt;
}

}  // namespace warpsmith
