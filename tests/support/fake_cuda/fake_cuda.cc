// A libcuda.so.1 without a GPU: memory is a memory file, and its handle a path; addresses are those of this
// process, and a stream has never anything to do. What is to happen otherwise stands in a script: fake_script.h.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "reward_service/cuda/driver_api.h"
#include "tests/support/fake_cuda/fake_kernels.h"
#include "tests/support/fake_cuda/fake_script.h"

namespace {

using namespace warpsmith::cuda;       // NOLINT: the library is the driver
using namespace warpsmith::fake_cuda;  // NOLINT: it does what the script says
using warpsmith::Compare;
using warpsmith::kInvalid;
using warpsmith::Pointer;

constexpr size_t kUnitBytes = 2 << 20;
constexpr size_t kAddressBytes = size_t{80} << 30;
constexpr auto kTurn = std::chrono::milliseconds(2);

// Numbers of the GPUs that this process sees, in the order of their indices. A jail has no script: it sees the one that
// is named.
std::vector<int> VisibleGpus() {
  const Script script = ReadScript();
  const int named = NamedGpu();
  const int num_gpus =
      std::getenv("FAKE_CUDA") == nullptr ? std::max(script.num_gpus, named + 1) : script.num_gpus;
  std::vector<int> visible;
  for (int number = 0; number < num_gpus; ++number) {
    if (script.gone.count(number) == 0 && (named < 0 || named == number)) visible.push_back(number);
  }
  return visible;
}

void Rest(const Script& script) {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::time_point> last = Clock::now();
  const bool rests = Clock::now() - last.load() > std::chrono::milliseconds(script.rest_after_ms);
  if (rests) std::this_thread::sleep_for(std::chrono::milliseconds(script.rest_ms));
  last = Clock::now();
}

void CountDown(int num_busy) { std::ofstream(std::getenv("FAKE_CUDA")) << "busy " << num_busy << "\n"; }

int Descriptor(Allocation allocation) { return static_cast<int>(allocation) - 1; }

// What cuIpcOpenMemHandle has opened, with its size.
std::map<Address, size_t>& Opened() {
  static auto* const opened = new std::map<Address, size_t>;
  return *opened;
}

// What a real driver does in a jail, at its first kernels and with the memory of its GPU: it shares memory with itself,
// and addresses much of it.
Result TakeHostMemory() {
  constexpr int kOwn = MAP_SHARED | MAP_ANONYMOUS, kAddresses = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const own = mmap(nullptr, kUnitBytes, PROT_READ | PROT_WRITE, kOwn, -1, 0);
  void* const addresses = mmap(nullptr, kAddressBytes, PROT_NONE, kAddresses, -1, 0);
  if (own == MAP_FAILED || addresses == MAP_FAILED) return kOutOfMemory;
  munmap(own, kUnitBytes);
  munmap(addresses, kAddressBytes);
  return 0;
}

std::set<std::string>& Names() {
  static auto* const names = new std::set<std::string>;
  return *names;
}

// Opens what a handle names: a path, or "jail:NAME", which is /tmp/NAME of some jail.
int OpenHandle(const std::string& name) {
  constexpr char kOfJail[] = "jail:";
  if (name.rfind(kOfJail, 0) != 0) return open(name.c_str(), O_RDWR | O_CLOEXEC);
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
    const auto file = process.path() / "root" / "tmp" / name.substr(sizeof(kOfJail) - 1);
    if (const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC); fd >= 0) return fd;
  }
  return -1;
}

}  // namespace

extern "C" {

// Who wants to be told of launches puts a function here. Without a name it is a copy or a fill.
void (*fake_cuda_on_launch)(const char* name, const unsigned* grid, const unsigned* block,
                            unsigned shared_bytes) = nullptr;

Result cuInit(unsigned) {
  RETURN_IF_FAILING();
  return VisibleGpus().empty() ? kNoDevice : 0;
}

Result cuDriverGetVersion(int* version) {
  *version = ReadScript().version;
  return 0;
}

Result cuGetErrorName(Result result, const char** name) {
  *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_SCRIPT";
  return 0;
}

Result cuDeviceGetCount(int* count) {
  *count = static_cast<int>(VisibleGpus().size());
  return 0;
}

Result cuDeviceGet(Device* device, int index) {
  const std::vector<int> visible = VisibleGpus();
  if (index < 0 || static_cast<size_t>(index) >= visible.size()) return kInvalid;
  *device = visible[static_cast<size_t>(index)];
  return 0;
}

Result cuDeviceGetName(char* name, int num_bytes, Device device) {
  std::snprintf(name, static_cast<size_t>(num_bytes), "Fake GPU %d", device);
  return 0;
}

Result cuDeviceGetUuid_v2(char* uuid, Device device) {
  std::memset(uuid, 0xAB, 16);
  uuid[15] = static_cast<char>(device);
  return 0;
}

Result cuDeviceTotalMem_v2(size_t* num_bytes, Device) {
  *num_bytes = ReadScript().memory_bytes;
  return 0;
}

Result cuMemGetInfo_v2(size_t* free_bytes, size_t* num_bytes) {
  RETURN_IF_FAILING();
  const Script script = ReadScript();
  *num_bytes = script.memory_bytes;
  *free_bytes = static_cast<size_t>(script.free_percent / 100.0 * static_cast<double>(script.memory_bytes));
  return 0;
}

Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  *value = attribute == kCapabilityMajor ? 9 : attribute == kCapabilityMinor ? 0 : 1'000'000;
  return 0;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device) {
  RETURN_IF_FAILING();
  *context = nullptr;
  return 0;
}

Result cuDevicePrimaryCtxRelease_v2(Device) { return 0; }
Result cuCtxSetCurrent(Context) { return 0; }

Result cuCtxSynchronize() {
  RETURN_IF_FAILING();
  return 0;
}

// For tests: how often this process asked for it.
int fake_cuda_num_cache_resets = 0;

Result cuCtxResetPersistingL2Cache() {
  RETURN_IF_FAILING();
  ++fake_cuda_num_cache_resets;
  return 0;
}

// Everything is done at once.
Result cuEventCreate(Event*, unsigned) { return 0; }
Result cuCtxRecordEvent(Context, Event) { return 0; }
Result cuCtxWaitEvent(Context, Event) { return 0; }

Result cuMemCreate(Allocation* allocation, size_t num_bytes, const AllocationProperties*,
                   unsigned long long) {
  RETURN_IF_FAILING();
  int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (fd < 0)
    fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);  // in a jail, where that is all there is
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(num_bytes)) != 0) return kOutOfMemory;
  *allocation = static_cast<Allocation>(fd) + 1;
  return 0;
}

Result cuMemRelease(Allocation allocation) { return close(Descriptor(allocation)) == 0 ? 0 : kInvalid; }

Result cuMemExportToShareableHandle(void* handle, Allocation allocation, int, unsigned long long) {
  const int fd = dup(Descriptor(allocation));
  std::memcpy(handle, &fd, sizeof(fd));
  return fd >= 0 ? 0 : kInvalid;
}

Result cuMemImportFromShareableHandle(Allocation* allocation, void* handle, int) {
  RETURN_IF_FAILING();
  if (const Result result = TakeHostMemory(); result != 0) return result;
  const int fd = dup(static_cast<int>(reinterpret_cast<uintptr_t>(handle)));
  *allocation = static_cast<Allocation>(fd) + 1;
  return fd >= 0 ? 0 : kInvalid;
}

Result cuMemAddressReserve(Address* address, size_t num_bytes, size_t, Address, unsigned long long) {
  void* const start = mmap(nullptr, num_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = start == MAP_FAILED ? 0 : reinterpret_cast<Address>(start);
  return start == MAP_FAILED ? kOutOfMemory : 0;
}

Result cuMemAddressFree(Address address, size_t num_bytes) {
  return munmap(Pointer(address), num_bytes) == 0 ? 0 : kInvalid;
}

Result cuMemMap(Address address, size_t num_bytes, size_t offset, Allocation allocation, unsigned long long) {
  void* const mapped = mmap(Pointer(address), num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                            Descriptor(allocation), static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? kInvalid : 0;
}

Result cuMemUnmap(Address address, size_t num_bytes) {
  return mmap(Pointer(address), num_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                 MAP_FAILED
             ? kInvalid
             : 0;
}

Result cuMemSetAccess(Address address, size_t num_bytes, const AccessDescription* access, size_t) {
  const int protection = access->flags == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
  return mprotect(Pointer(address), num_bytes, protection) == 0 ? 0 : kInvalid;
}

Result cuMemGetAllocationGranularity(size_t* num_bytes, const AllocationProperties*, int) {
  *num_bytes = kUnitBytes;
  return 0;
}

Result cuIpcOpenMemHandle_v2(Address* address, IpcHandle handle, unsigned) {
  RETURN_IF_FAILING();
  const int fd = OpenHandle({handle.bytes, strnlen(handle.bytes, sizeof(handle.bytes))});
  struct stat facts {};
  if (fd < 0 || fstat(fd, &facts) != 0 || facts.st_size == 0) return kInvalid;
  const auto num_bytes = static_cast<size_t>(facts.st_size);
  void* const start = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (start == MAP_FAILED) return kInvalid;
  *address = reinterpret_cast<Address>(start);
  Opened()[*address] = num_bytes;
  return 0;
}

Result cuMemGetAddressRange_v2(Address* start, size_t* num_bytes, Address address) {
  RETURN_IF_FAILING();
  const auto found = Opened().find(address);
  if (found == Opened().end()) return kInvalid;
  *start = address;
  *num_bytes = found->second;
  return 0;
}

Result cuIpcCloseMemHandle(Address address) {
  const auto found = Opened().find(address);
  if (found == Opened().end()) return kInvalid;
  munmap(Pointer(address), found->second);
  Opened().erase(found);
  return 0;
}

Result cuMemHostRegister_v2(void*, size_t, unsigned) {
  RETURN_IF_FAILING();
  return 0;
}

Result cuMemHostUnregister(void*) { return 0; }

Result cuMemHostGetDevicePointer_v2(Address* address, void* start, unsigned) {
  *address = reinterpret_cast<Address>(start);
  return 0;
}

Result cuMemcpyAsync(Address to, Address from, size_t num_bytes, Stream) {
  std::memcpy(Pointer(to), Pointer(from), num_bytes);
  return 0;
}

Result cuMemcpyHtoD_v2(Address to, const void* from, size_t num_bytes) {
  RETURN_IF_FAILING();
  std::memcpy(Pointer(to), from, num_bytes);
  return 0;
}

Result cuMemcpyDtoH_v2(void* to, Address from, size_t num_bytes) {
  RETURN_IF_FAILING();
  std::memcpy(to, Pointer(from), num_bytes);
  return 0;
}

Result cuMemcpyDtoD_v2(Address to, Address from, size_t num_bytes) {
  std::memcpy(Pointer(to), Pointer(from), num_bytes);
  return 0;
}

Result cuMemsetD8_v2(Address to, unsigned char value, size_t num_bytes) {
  RETURN_IF_FAILING();
  std::memset(Pointer(to), value, num_bytes);
  return 0;
}

Result cuMemsetD8Async(Address to, unsigned char value, size_t num_bytes, Stream) {
  if (fake_cuda_on_launch != nullptr) fake_cuda_on_launch(nullptr, nullptr, nullptr, 0);
  return cuMemsetD8_v2(to, value, num_bytes);
}

Result cuStreamCreate(Stream* stream, unsigned) {
  *stream = nullptr;
  return 0;
}

Result cuModuleLoadData(Module* module, const void*) {
  RETURN_IF_FAILING();
  *module = nullptr;
  return 0;
}

Result cuModuleGetFunction(Function* function, Module, const char* name) {
  *function = reinterpret_cast<Function>(const_cast<std::string*>(&*Names().insert(name).first));
  return 0;
}

Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream, void** arguments,
                      void**) {
  RETURN_IF_FAILING();
  const std::string& name = *reinterpret_cast<std::string*>(function);
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  if (fake_cuda_on_launch != nullptr) fake_cuda_on_launch(name.c_str(), grid, block, shared_bytes);
  if (const Result result = Compare(name, arguments); result != 0) return result;
  const Script script = ReadScript();
  Rest(script);
  if (script.num_busy > 0) {
    CountDown(script.num_busy - 1);
    std::this_thread::sleep_for(kTurn);
  }
  return 0;
}

}  // extern "C"
