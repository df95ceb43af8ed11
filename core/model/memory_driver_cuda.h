// The driver's virtual memory management, found through the runtime: the process does not link the driver.
#ifndef WARPSMITH_CORE_MODEL_MEMORY_DRIVER_CUDA_H_
#define WARPSMITH_CORE_MODEL_MEMORY_DRIVER_CUDA_H_

#include <cuda.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

struct MemoryDriver {
  // FAILED_PRECONDITION, naming the function, where the driver is too old.
  static absl::StatusOr<MemoryDriver> Find();

  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_addresses = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;
};

// A range of addresses, and memory behind it or not. Its owner releases what the members hold.
struct DriverMapping {
  MemoryDriver driver;
  CUmemAllocationProp properties = {};
  int64_t bytes = 0;  // a multiple of what the driver hands out
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  bool has_handle = false, mapped = false;

  // Addresses for at least `bytes_wanted` on `device`. `shareable`: memory can be given to other processes.
  static absl::StatusOr<DriverMapping> Reserve(int device, int64_t bytes_wanted, bool shareable);
  // Takes memory: RESOURCE_EXHAUSTED when the GPU has too little.
  absl::Status Create();
  // Puts `handle` behind the addresses, for reading and writing on the device.
  absl::Status Map();
  // Nothing on the device may use the memory any more. Both may be repeated.
  void Unmap();
  void FreeAddresses();
};

// `what` and how much it was about; RESOURCE_EXHAUSTED for too little memory, else INTERNAL.
absl::Status MemoryDriverStatus(CUresult result, const char* what, int64_t bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_MEMORY_DRIVER_CUDA_H_
