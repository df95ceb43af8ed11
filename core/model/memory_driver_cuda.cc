#include "core/model/memory_driver_cuda.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"

namespace warpsmith {
namespace {

template <typename Function>
absl::Status FindFunction(const char* name, Function& function) {
  constexpr unsigned kVersion = 12000;  // of the signatures
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  void* found = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result), name));
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the GPU's driver has no ", name, ": update it, to one for CUDA 13 at least"));
  }
  function = reinterpret_cast<Function>(found);
  return absl::OkStatus();
}

CUmemAllocationProp PropertiesOf(int device, bool shareable) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  if (shareable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

}  // namespace

absl::Status MemoryDriverStatus(CUresult result, const char* what, int64_t bytes) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const std::string text =
      absl::StrCat(what, " of ", bytes, " bytes: CUDA driver error ", static_cast<int>(result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(text + ", out of memory");
  return absl::InternalError(text);
}

absl::StatusOr<MemoryDriver> MemoryDriver::Find() {
  MemoryDriver driver;
  RETURN_IF_ERROR(FindFunction("cuMemGetAllocationGranularity", driver.granularity));
  RETURN_IF_ERROR(FindFunction("cuMemAddressReserve", driver.reserve));
  RETURN_IF_ERROR(FindFunction("cuMemAddressFree", driver.free_addresses));
  RETURN_IF_ERROR(FindFunction("cuMemCreate", driver.create));
  RETURN_IF_ERROR(FindFunction("cuMemRelease", driver.release));
  RETURN_IF_ERROR(FindFunction("cuMemMap", driver.map));
  RETURN_IF_ERROR(FindFunction("cuMemUnmap", driver.unmap));
  RETURN_IF_ERROR(FindFunction("cuMemSetAccess", driver.set_access));
  RETURN_IF_ERROR(FindFunction("cuMemExportToShareableHandle", driver.export_handle));
  RETURN_IF_ERROR(FindFunction("cuMemImportFromShareableHandle", driver.import_handle));
  return driver;
}

absl::StatusOr<DriverMapping> DriverMapping::Reserve(int device, int64_t bytes_wanted, bool shareable) {
  DriverMapping mapping{.properties = PropertiesOf(device, shareable)};
  ASSIGN_OR_RETURN(mapping.driver, MemoryDriver::Find());
  size_t unit = 0;
  RETURN_IF_ERROR(MemoryDriverStatus(
      mapping.driver.granularity(&unit, &mapping.properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      "cuMemGetAllocationGranularity", bytes_wanted));
  const auto step = static_cast<int64_t>(unit);
  mapping.bytes = (bytes_wanted + step - 1) / step * step;
  RETURN_IF_ERROR(MemoryDriverStatus(mapping.driver.reserve(&mapping.address, mapping.bytes, 0, 0, 0),
                                     "cuMemAddressReserve", mapping.bytes));
  return mapping;
}

absl::Status DriverMapping::Create() {
  RETURN_IF_ERROR(MemoryDriverStatus(driver.create(&handle, bytes, &properties, 0), "cuMemCreate", bytes));
  has_handle = true;
  return absl::OkStatus();
}

absl::Status DriverMapping::Map() {
  RETURN_IF_ERROR(MemoryDriverStatus(driver.map(address, bytes, 0, handle, 0), "cuMemMap", bytes));
  mapped = true;
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return MemoryDriverStatus(driver.set_access(address, bytes, &access, 1), "cuMemSetAccess", bytes);
}

void DriverMapping::Unmap() {
  if (std::exchange(mapped, false)) driver.unmap(address, bytes);
  if (std::exchange(has_handle, false)) driver.release(handle);
}

void DriverMapping::FreeAddresses() {
  if (address != 0) driver.free_addresses(std::exchange(address, 0), bytes);
}

}  // namespace warpsmith
