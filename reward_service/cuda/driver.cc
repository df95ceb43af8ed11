#include "reward_service/cuda/driver.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";
// Candidates are compiled for CUDA 13, and Torch is built with it.
constexpr int kVersionMin = 13000;

std::string VersionName(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

struct NamedFunction {
  const char* name;
  void** function;
};

std::vector<NamedFunction> FunctionsOf(DriverApi* api) {
  // POSIX has dlsym() give functions as pointers to objects.
  const auto pointer = [](auto* function) { return reinterpret_cast<void**>(function); };
  return {
      {"cuInit", pointer(&api->cuInit)},
      {"cuDriverGetVersion", pointer(&api->cuDriverGetVersion)},
      {"cuGetErrorName", pointer(&api->cuGetErrorName)},
      {"cuDeviceGetCount", pointer(&api->cuDeviceGetCount)},
      {"cuDeviceGet", pointer(&api->cuDeviceGet)},
      {"cuDeviceGetName", pointer(&api->cuDeviceGetName)},
      {"cuDeviceGetUuid_v2", pointer(&api->cuDeviceGetUuid_v2)},
      {"cuDeviceTotalMem_v2", pointer(&api->cuDeviceTotalMem_v2)},
      {"cuDeviceGetAttribute", pointer(&api->cuDeviceGetAttribute)},
      {"cuDevicePrimaryCtxRetain", pointer(&api->cuDevicePrimaryCtxRetain)},
      {"cuDevicePrimaryCtxRelease_v2", pointer(&api->cuDevicePrimaryCtxRelease_v2)},
      {"cuCtxSetCurrent", pointer(&api->cuCtxSetCurrent)},
      {"cuCtxSynchronize", pointer(&api->cuCtxSynchronize)},
      {"cuCtxResetPersistingL2Cache", pointer(&api->cuCtxResetPersistingL2Cache)},
      {"cuCtxRecordEvent", pointer(&api->cuCtxRecordEvent)},
      {"cuCtxWaitEvent", pointer(&api->cuCtxWaitEvent)},
      {"cuEventCreate", pointer(&api->cuEventCreate)},
      {"cuDeviceGetDefaultMemPool", pointer(&api->cuDeviceGetDefaultMemPool)},
      {"cuMemPoolSetAttribute", pointer(&api->cuMemPoolSetAttribute)},
      {"cuMemPoolGetAttribute", pointer(&api->cuMemPoolGetAttribute)},
      {"cuMemPoolTrimTo", pointer(&api->cuMemPoolTrimTo)},
      {"cuMemAllocAsync", pointer(&api->cuMemAllocAsync)},
      {"cuMemFreeAsync", pointer(&api->cuMemFreeAsync)},
      {"cuMemGetInfo_v2", pointer(&api->cuMemGetInfo_v2)},
      {"cuMemCreate", pointer(&api->cuMemCreate)},
      {"cuMemRelease", pointer(&api->cuMemRelease)},
      {"cuMemExportToShareableHandle", pointer(&api->cuMemExportToShareableHandle)},
      {"cuMemImportFromShareableHandle", pointer(&api->cuMemImportFromShareableHandle)},
      {"cuMemAddressReserve", pointer(&api->cuMemAddressReserve)},
      {"cuMemAddressFree", pointer(&api->cuMemAddressFree)},
      {"cuMemMap", pointer(&api->cuMemMap)},
      {"cuMemUnmap", pointer(&api->cuMemUnmap)},
      {"cuMemSetAccess", pointer(&api->cuMemSetAccess)},
      {"cuMemGetAllocationGranularity", pointer(&api->cuMemGetAllocationGranularity)},
      {"cuMemGetAddressRange_v2", pointer(&api->cuMemGetAddressRange_v2)},
      {"cuIpcOpenMemHandle_v2", pointer(&api->cuIpcOpenMemHandle_v2)},
      {"cuIpcCloseMemHandle", pointer(&api->cuIpcCloseMemHandle)},
      {"cuMemHostRegister_v2", pointer(&api->cuMemHostRegister_v2)},
      {"cuMemHostUnregister", pointer(&api->cuMemHostUnregister)},
      {"cuMemHostGetDevicePointer_v2", pointer(&api->cuMemHostGetDevicePointer_v2)},
      {"cuMemcpyAsync", pointer(&api->cuMemcpyAsync)},
      {"cuMemcpyHtoD_v2", pointer(&api->cuMemcpyHtoD_v2)},
      {"cuMemcpyDtoH_v2", pointer(&api->cuMemcpyDtoH_v2)},
      {"cuMemcpyDtoD_v2", pointer(&api->cuMemcpyDtoD_v2)},
      {"cuMemsetD8_v2", pointer(&api->cuMemsetD8_v2)},
      {"cuMemsetD8Async", pointer(&api->cuMemsetD8Async)},
      {"cuStreamCreate", pointer(&api->cuStreamCreate)},
      {"cuModuleLoadData", pointer(&api->cuModuleLoadData)},
      {"cuModuleGetFunction", pointer(&api->cuModuleGetFunction)},
      {"cuLaunchKernel", pointer(&api->cuLaunchKernel)},
  };
}

// As nvidia-smi writes it.
std::string UuidName(const std::array<char, 16>& uuid) {
  std::string name = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid[i]));
    name += digits;
  }
  return name;
}

absl::StatusOr<GpuFacts> FactsOf(const Driver& driver, int index) {
  const DriverApi& api = driver.api();
  GpuFacts facts;
  facts.index = index;
  Device device = 0;
  RETURN_IF_ERROR(driver.Check(api.cuDeviceGet(&device, index), "cuDeviceGet"));
  char name[256] = {};
  RETURN_IF_ERROR(driver.Check(api.cuDeviceGetName(name, sizeof(name) - 1, device), "cuDeviceGetName"));
  facts.name = name;
  std::array<char, 16> uuid{};
  RETURN_IF_ERROR(driver.Check(api.cuDeviceGetUuid_v2(uuid.data(), device), "cuDeviceGetUuid"));
  facts.uuid = UuidName(uuid);
  size_t memory_bytes = 0;
  RETURN_IF_ERROR(driver.Check(api.cuDeviceTotalMem_v2(&memory_bytes, device), "cuDeviceTotalMem"));
  facts.memory_bytes = static_cast<int64_t>(memory_bytes);
  int version = 0, cache_bytes = 0;
  RETURN_IF_ERROR(driver.Check(api.cuDriverGetVersion(&version), "cuDriverGetVersion"));
  facts.driver_version = VersionName(version);
  struct {
    int* value;
    int attribute;
  } const wanted[] = {{&facts.capability_major, kCapabilityMajor},
                      {&facts.capability_minor, kCapabilityMinor},
                      {&facts.num_multiprocessors, kNumMultiprocessors},
                      {&cache_bytes, kL2CacheBytes}};
  for (const auto& [value, attribute] : wanted) {
    RETURN_IF_ERROR(driver.Check(api.cuDeviceGetAttribute(value, attribute, device), "cuDeviceGetAttribute"));
  }
  facts.l2_cache_bytes = cache_bytes;
  return facts;
}

}  // namespace

absl::StatusOr<const Driver*> Driver::Load(const std::string& path) {
  static const auto* const loaded = new absl::StatusOr<const Driver*>(LoadOnce(path));
  return *loaded;
}

absl::StatusOr<const Driver*> Driver::LoadOnce(const std::string& path) {
  void* const library = dlopen(path.empty() ? kLibrary : path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat("this machine has no driver of CUDA: ", dlerror()));
  }
  auto* const driver = new Driver();  // as long as the process, like the library
  for (const auto& [name, function] : FunctionsOf(&driver->api_)) {
    *function = dlsym(library, name);
    if (*function == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("the driver of CUDA is older than ", VersionName(kVersionMin), ": it has no ", name));
    }
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(driver->api_.cuInit), &info) != 0) {
    const std::unique_ptr<char, decltype(&free)> file(realpath(info.dli_fname, nullptr), &free);
    if (file != nullptr) driver->path_ = file.get();
  }
  return driver;
}

absl::Status Driver::Initialise() const {
  const Result result = api_.cuInit(0);
  if (result == kNoDevice) return absl::NotFoundError("the driver of CUDA sees no GPU");
  RETURN_IF_ERROR(Check(result, "cuInit"));
  int version = 0;
  RETURN_IF_ERROR(Check(api_.cuDriverGetVersion(&version), "cuDriverGetVersion"));
  if (version >= kVersionMin) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the driver knows CUDA ", VersionName(version), ", ",
                                                    VersionName(kVersionMin),
                                                    " is wanted: install a newer one"));
}

absl::Status Driver::Check(Result result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char* name = nullptr;
  if (api_.cuGetErrorName(result, &name) != 0 || name == nullptr) name = "an unknown error";
  const std::string message = absl::StrCat(what, ": ", name, " (", result, ")");
  return result == kOutOfMemory ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

std::string GpuFacts::architecture() const {
  return absl::StrCat("sm_", capability_major, capability_minor, capability_major >= 9 ? "a" : "");
}

absl::StatusOr<std::vector<GpuFacts>> ListGpus() {
  ASSIGN_OR_RETURN(const Driver* driver, Driver::Load());
  RETURN_IF_ERROR(driver->Initialise());
  int count = 0;
  RETURN_IF_ERROR(driver->Check(driver->api().cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<GpuFacts> gpus;
  for (int index = 0; index < count; ++index) {
    ASSIGN_OR_RETURN(GpuFacts facts, FactsOf(*driver, index));
    gpus.push_back(std::move(facts));
  }
  return gpus;
}

}  // namespace warpsmith::cuda
