// A GPU made of the host, for tests without one: CUDA's runtime as far as core/model uses it. Its kernels are their
// references: host_gpu_halves.cc, host_gpu_kernels.cc.
// Linked as objects, so that these definitions take the place of the others. Everything has happened when a
// call returns, so streams and races are not tested; a thread that captures (host_graph.h) records its kernels instead.
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/distributed/nccl_environment.h"
#include "tests/support/host_gpu_faults.h"

namespace warpsmith {

// One, where no other file of the test has more.
__attribute__((weak)) int HostGpuCount() { return 1; }

}  // namespace warpsmith

namespace {

constexpr size_t kMemory = size_t{4} << 30;
[[maybe_unused]] const bool kIsDecided = (warpsmith::LeaveMulticastOff(), true);  // before any thread
char g_something;                                                                 // what handles point to

cudaError_t Allocate(void** memory, size_t bytes) {
  if (bytes > kMemory) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

CUresult Granularity(size_t* unit, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *unit = size_t{2} << 20;
  return CUDA_SUCCESS;
}
// Addresses without memory: whoever touches them is stopped.
CUresult ReserveAddresses(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult FreeAddresses(CUdeviceptr address, size_t bytes) {
  return munmap(reinterpret_cast<void*>(address), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
// Memory is a file in memory, and its handle the file's descriptor: so other processes can map it.
CUresult CreateMemory(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                      unsigned long long) {
  if (bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = memfd_create("host_gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(file);
  return CUDA_SUCCESS;
}
CUresult ReleaseMemory(CUmemGenericAllocationHandle handle) {
  return close(static_cast<int>(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult MapMemory(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                   unsigned long long) {
  struct stat status = {};
  const int file = static_cast<int>(handle);
  if (fstat(file, &status) != 0 || static_cast<size_t>(status.st_size) < bytes)
    return CUDA_ERROR_INVALID_VALUE;
  void* const memory = reinterpret_cast<void*>(address);
  const bool mapped =
      mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  return mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult UnmapMemory(CUdeviceptr address, size_t bytes) {
  void* const memory = reinterpret_cast<void*>(address);
  mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult ExportHandle(void* descriptor, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                      unsigned long long) {
  *static_cast<int*>(descriptor) = dup(static_cast<int>(handle));
  return CUDA_SUCCESS;
}
CUresult ImportHandle(CUmemGenericAllocationHandle* handle, void* descriptor, CUmemAllocationHandleType) {
  const int file = dup(static_cast<int>(reinterpret_cast<intptr_t>(descriptor)));
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return CUDA_ERROR_INVALID_VALUE;
  *handle = static_cast<CUmemGenericAllocationHandle>(file);
  return CUDA_SUCCESS;
}
CUresult SetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }

struct EntryPoint {
  const char* name;
  void* function;
};

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (warpsmith::HostFaults().driver_is_old) return cudaErrorInsufficientDriver;
  *count = warpsmith::HostGpuCount();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device >= 0 && device < warpsmith::HostGpuCount() ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9
           : attribute == cudaDevAttrL2CacheSize          ? 1 << 20
                                                          : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "a GPU made of the host");
  properties->major = 9;
  properties->uuid.bytes[15] = 0x2a;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  warpsmith::AwaitHostGpu();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaMalloc(void** memory, size_t bytes) { return Allocate(memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) { return Allocate(memory, bytes); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return Allocate(memory, bytes); }
cudaError_t cudaFree(void* memory) {
  warpsmith::AwaitHostGpu();
  if (memory != nullptr) ++warpsmith::HostFaults().num_freed;
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(&g_something);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) {
  return warpsmith::HostFaults().hangs ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(&g_something);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) {
  return warpsmith::HostFaults().hangs ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* argument) {
  if (!warpsmith::HostFaults().hangs) function(argument);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const EntryPoint points[] = {{"cuMemGetAllocationGranularity", reinterpret_cast<void*>(&Granularity)},
                               {"cuMemAddressReserve", reinterpret_cast<void*>(&ReserveAddresses)},
                               {"cuMemAddressFree", reinterpret_cast<void*>(&FreeAddresses)},
                               {"cuMemCreate", reinterpret_cast<void*>(&CreateMemory)},
                               {"cuMemRelease", reinterpret_cast<void*>(&ReleaseMemory)},
                               {"cuMemMap", reinterpret_cast<void*>(&MapMemory)},
                               {"cuMemUnmap", reinterpret_cast<void*>(&UnmapMemory)},
                               {"cuMemSetAccess", reinterpret_cast<void*>(&SetAccess)},
                               {"cuMemExportToShareableHandle", reinterpret_cast<void*>(&ExportHandle)},
                               {"cuMemImportFromShareableHandle", reinterpret_cast<void*>(&ImportHandle)}};
  for (const EntryPoint& point : points) {
    if (std::strcmp(point.name, name) != 0 || warpsmith::HostFaults().lacks_virtual_memory) continue;
    *function = point.function;
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
  }
  *result = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(&g_something);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

}  // extern "C"
