// The part of NVIDIA's management library that the referee uses, declared here as the driver's is in driver_api.h.
// Names, types and values are those of the NVML API Reference Guide.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_NVML_API_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_NVML_API_H_

namespace warpsmith::cuda {

using NvmlResult = int;  // nvmlReturn_t; 0: success
using NvmlDevice = struct NvmlDeviceObject*;

inline constexpr NvmlResult kNvmlNotSupported = 3;
inline constexpr NvmlResult kNvmlNotFound = 6;

// nvmlClockType_t.
inline constexpr int kSmClock = 1;
inline constexpr int kMemoryClock = 2;

// The functions, found by name in one library.
struct NvmlApi {
  NvmlResult (*nvmlInit_v2)() = nullptr;
  NvmlResult (*nvmlShutdown)() = nullptr;
  const char* (*nvmlErrorString)(NvmlResult result) = nullptr;
  NvmlResult (*nvmlDeviceGetHandleByUUID)(const char* uuid, NvmlDevice* device) = nullptr;
  NvmlResult (*nvmlDeviceGetClockInfo)(NvmlDevice device, int type, unsigned* mhz) = nullptr;
  // Before driver 535 it was nvmlDeviceGetCurrentClocksThrottleReasons.
  NvmlResult (*nvmlDeviceGetCurrentClocksEventReasons)(NvmlDevice device,
                                                       unsigned long long* reasons) = nullptr;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_NVML_API_H_
