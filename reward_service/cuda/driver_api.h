// The part of CUDA's driver API that referee and jails use, declared here: neither a toolkit nor a GPU is
// needed to build it. Names, types and values are those of the CUDA Driver API Reference Manual, 12.0 and later.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_DRIVER_API_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

namespace warpsmith::cuda {

using Result = int;  // CUresult; 0: success
using Device = int;
using Address = unsigned long long;  // CUdeviceptr
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Allocation = unsigned long long;  // CUmemGenericAllocationHandle
using Pool = struct PoolObject*;        // CUmemoryPool

// CUmemAllocationProp.
struct AllocationProperties {
  int type = 1;           // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 1;   // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
  int location_type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int location = 0;       // of the device
  void* windows_only = nullptr;
  unsigned char compression = 0;
  unsigned char rdma = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

// CUmemAccessDesc.
struct AccessDescription {
  int location_type = 1;
  int location = 0;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE; 1: to read
};

// CUipcMemHandle: one process's memory, as another can open it.
struct IpcHandle {
  char bytes[64] = {};
};

// CUdevice_attribute.
inline constexpr int kNumMultiprocessors = 16;
inline constexpr int kL2CacheBytes = 38;
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;

// CUmemPool_attribute.
inline constexpr int kPoolReleaseThreshold = 4;
inline constexpr int kPoolReservedBytes = 5;
inline constexpr int kPoolUsedBytes = 7;

inline constexpr unsigned kNonBlockingStream = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventWithoutTime = 2;   // CU_EVENT_DISABLE_TIMING
inline constexpr int kFileDescriptor = 1;          // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
inline constexpr unsigned kHostMemoryMapped = 2;   // CU_MEMHOSTREGISTER_DEVICEMAP
inline constexpr unsigned kLazyPeerAccess = 1;     // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr Result kOutOfMemory = 2;          // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr Result kNoDevice = 100;           // CUDA_ERROR_NO_DEVICE

// The functions, found by name in one library.
struct DriverApi {
  Result (*cuInit)(unsigned flags) = nullptr;
  Result (*cuDriverGetVersion)(int* version) = nullptr;
  Result (*cuGetErrorName)(Result result, const char** name) = nullptr;
  Result (*cuDeviceGetCount)(int* count) = nullptr;
  Result (*cuDeviceGet)(Device* device, int index) = nullptr;
  Result (*cuDeviceGetName)(char* name, int num_bytes, Device device) = nullptr;
  Result (*cuDeviceGetUuid_v2)(char* uuid, Device device) = nullptr;
  Result (*cuDeviceTotalMem_v2)(size_t* num_bytes, Device device) = nullptr;
  Result (*cuDeviceGetAttribute)(int* value, int attribute, Device device) = nullptr;
  Result (*cuDevicePrimaryCtxRetain)(Context* context, Device device) = nullptr;
  Result (*cuDevicePrimaryCtxRelease_v2)(Device device) = nullptr;
  Result (*cuCtxSetCurrent)(Context context) = nullptr;
  Result (*cuCtxSynchronize)() = nullptr;
  Result (*cuCtxResetPersistingL2Cache)() = nullptr;
  Result (*cuCtxRecordEvent)(Context context, Event event) = nullptr;
  Result (*cuCtxWaitEvent)(Context context, Event event) = nullptr;
  Result (*cuEventCreate)(Event* event, unsigned flags) = nullptr;
  Result (*cuDeviceGetDefaultMemPool)(Pool* pool, Device device) = nullptr;
  Result (*cuMemPoolSetAttribute)(Pool pool, int attribute, void* value) = nullptr;
  Result (*cuMemPoolGetAttribute)(Pool pool, int attribute, void* value) = nullptr;
  Result (*cuMemPoolTrimTo)(Pool pool, size_t bytes_kept) = nullptr;
  Result (*cuMemAllocAsync)(Address* address, size_t num_bytes, Stream stream) = nullptr;
  Result (*cuMemFreeAsync)(Address address, Stream stream) = nullptr;
  Result (*cuMemGetInfo_v2)(size_t* free_bytes, size_t* num_bytes) = nullptr;
  Result (*cuMemCreate)(Allocation* allocation, size_t num_bytes, const AllocationProperties* properties,
                        unsigned long long flags) = nullptr;
  Result (*cuMemRelease)(Allocation allocation) = nullptr;
  Result (*cuMemExportToShareableHandle)(void* handle, Allocation allocation, int type,
                                         unsigned long long flags) = nullptr;
  Result (*cuMemImportFromShareableHandle)(Allocation* allocation, void* handle, int type) = nullptr;
  Result (*cuMemAddressReserve)(Address* address, size_t num_bytes, size_t alignment, Address hint,
                                unsigned long long flags) = nullptr;
  Result (*cuMemAddressFree)(Address address, size_t num_bytes) = nullptr;
  Result (*cuMemMap)(Address address, size_t num_bytes, size_t offset, Allocation allocation,
                     unsigned long long flags) = nullptr;
  Result (*cuMemUnmap)(Address address, size_t num_bytes) = nullptr;
  Result (*cuMemSetAccess)(Address address, size_t num_bytes, const AccessDescription* access,
                           size_t count) = nullptr;
  Result (*cuMemGetAllocationGranularity)(size_t* num_bytes, const AllocationProperties* properties,
                                          int option) = nullptr;
  Result (*cuMemGetAddressRange_v2)(Address* start, size_t* num_bytes, Address address) = nullptr;
  Result (*cuIpcOpenMemHandle_v2)(Address* address, IpcHandle handle, unsigned flags) = nullptr;
  Result (*cuIpcCloseMemHandle)(Address address) = nullptr;
  Result (*cuMemHostRegister_v2)(void* start, size_t num_bytes, unsigned flags) = nullptr;
  Result (*cuMemHostUnregister)(void* start) = nullptr;
  Result (*cuMemHostGetDevicePointer_v2)(Address* address, void* start, unsigned flags) = nullptr;
  Result (*cuMemcpyAsync)(Address to, Address from, size_t num_bytes, Stream stream) = nullptr;
  Result (*cuMemcpyHtoD_v2)(Address to, const void* from, size_t num_bytes) = nullptr;
  Result (*cuMemcpyDtoH_v2)(void* to, Address from, size_t num_bytes) = nullptr;
  Result (*cuMemcpyDtoD_v2)(Address to, Address from, size_t num_bytes) = nullptr;
  Result (*cuMemsetD8_v2)(Address to, unsigned char value, size_t num_bytes) = nullptr;
  Result (*cuMemsetD8Async)(Address to, unsigned char value, size_t num_bytes, Stream stream) = nullptr;
  Result (*cuStreamCreate)(Stream* stream, unsigned flags) = nullptr;
  Result (*cuModuleLoadData)(Module* module, const void* image) = nullptr;
  Result (*cuModuleGetFunction)(Function* function, Module module, const char* name) = nullptr;
  Result (*cuLaunchKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                           Stream stream, void** arguments, void** extra) = nullptr;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_DRIVER_API_H_
