#include "core/model/resident_memory_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"

namespace warpsmith {
namespace {

// The driver's own functions, found through the runtime: the process does not link the driver.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_addresses = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
};

template <typename Function>
absl::Status Find(const char* name, Function& function) {
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

absl::StatusOr<Driver> FindDriver() {
  Driver driver;
  RETURN_IF_ERROR(Find("cuMemGetAllocationGranularity", driver.granularity));
  RETURN_IF_ERROR(Find("cuMemAddressReserve", driver.reserve));
  RETURN_IF_ERROR(Find("cuMemAddressFree", driver.free_addresses));
  RETURN_IF_ERROR(Find("cuMemCreate", driver.create));
  RETURN_IF_ERROR(Find("cuMemRelease", driver.release));
  RETURN_IF_ERROR(Find("cuMemMap", driver.map));
  RETURN_IF_ERROR(Find("cuMemUnmap", driver.unmap));
  RETURN_IF_ERROR(Find("cuMemSetAccess", driver.set_access));
  return driver;
}

absl::Status DriverStatus(CUresult result, const char* what, int64_t bytes) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const std::string text =
      absl::StrCat(what, " of ", bytes, " bytes: CUDA driver error ", static_cast<int>(result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(text + ", out of memory");
  return absl::InternalError(text);
}

CUmemAllocationProp PropertiesOf(int device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  return properties;
}

}  // namespace

struct ResidentMemory::State {
  Driver driver;
  int device = 0;
  int64_t bytes = 0;  // a multiple of what the driver hands out
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  bool created = false, mapped = false;

  absl::Status Map();
};

absl::StatusOr<std::unique_ptr<ResidentMemory>> ResidentMemory::Reserve(int device, int64_t bytes) {
  auto state = std::make_unique<State>();
  ASSIGN_OR_RETURN(state->driver, FindDriver());
  state->device = device;
  const CUmemAllocationProp properties = PropertiesOf(device);
  size_t unit = 0;
  RETURN_IF_ERROR(
      DriverStatus(state->driver.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "cuMemGetAllocationGranularity", bytes));
  const auto step = static_cast<int64_t>(unit);
  state->bytes = (bytes + step - 1) / step * step;
  RETURN_IF_ERROR(DriverStatus(state->driver.reserve(&state->address, state->bytes, 0, 0, 0),
                               "cuMemAddressReserve", state->bytes));
  return std::unique_ptr<ResidentMemory>(new ResidentMemory(std::move(state)));
}

ResidentMemory::ResidentMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}

ResidentMemory::~ResidentMemory() {
  Free();
  state_->driver.free_addresses(state_->address, state_->bytes);
}

absl::Status ResidentMemory::State::Map() {
  const CUmemAllocationProp properties = PropertiesOf(device);
  RETURN_IF_ERROR(DriverStatus(driver.create(&handle, bytes, &properties, 0), "cuMemCreate", bytes));
  created = true;
  RETURN_IF_ERROR(DriverStatus(driver.map(address, bytes, 0, handle, 0), "cuMemMap", bytes));
  mapped = true;
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  RETURN_IF_ERROR(DriverStatus(driver.set_access(address, bytes, &access, 1), "cuMemSetAccess", bytes));
  RETURN_IF_ERROR(CudaStatus(cudaMemset(reinterpret_cast<void*>(address), 0, bytes), "cudaMemset of pages"));
  return CudaStatus(cudaStreamSynchronize(nullptr), "cudaMemset of pages");
}

absl::Status ResidentMemory::Allocate() {
  if (resident()) return absl::OkStatus();
  absl::Status status = state_->Map();
  if (!status.ok()) Free();
  return status;
}

void ResidentMemory::Free() {
  if (state_->mapped) {
    cudaDeviceSynchronize();
    state_->driver.unmap(state_->address, state_->bytes);
  }
  if (state_->created) state_->driver.release(state_->handle);
  state_->mapped = state_->created = false;
}

std::byte* ResidentMemory::get() const { return reinterpret_cast<std::byte*>(state_->address); }
bool ResidentMemory::resident() const { return state_->mapped; }

}  // namespace warpsmith
