#include "reward_service/cuda/gpu_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

// The instruction set is that of the oldest GPUs that a current driver knows: the driver translates it.
constexpr char kProbe[] = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry probe(.param .u64 counter) {
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [counter];
  ld.global.u32 %value, [%address];
  add.u32 %value, %value, 1;
  st.global.u32 [%address], %value;
  ret;
}
)";
constexpr int kProbes = 21;
// On an H200 idle probes took 8 to 15 us, those beside another kernel over 1,138: between them, with as much room on
// either side.
constexpr double kBusyFactor = 10;

AllocationProperties PropertiesOn(const GpuContext& context) {
  AllocationProperties properties;
  properties.location = context.device();
  return properties;
}

// At least `num_bytes` of memory, and one unit of the driver's.
absl::StatusOr<size_t> WholeUnits(const GpuContext& context, int64_t num_bytes) {
  const AllocationProperties properties = PropertiesOn(context);
  size_t unit = 0;
  RETURN_IF_ERROR(context.driver().Check(
      context.driver().api().cuMemGetAllocationGranularity(&unit, &properties, /*option=*/0),
      "cuMemGetAllocationGranularity"));
  return (static_cast<size_t>(std::max<int64_t>(num_bytes, 1)) + unit - 1) / unit * unit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuContext>> GpuContext::Open(int index) {
  ASSIGN_OR_RETURN(const Driver* driver, Driver::Load());
  RETURN_IF_ERROR(driver->Initialise());
  Device device = 0;
  RETURN_IF_ERROR(driver->Check(driver->api().cuDeviceGet(&device, index), "cuDeviceGet"));
  Context made = nullptr;
  RETURN_IF_ERROR(
      driver->Check(driver->api().cuDevicePrimaryCtxRetain(&made, device), "cuDevicePrimaryCtxRetain"));
  std::unique_ptr<GpuContext> context(new GpuContext(*driver, device, made));
  RETURN_IF_ERROR(context->Enter());
  RETURN_IF_ERROR(
      driver->Check(driver->api().cuEventCreate(&context->event_, kEventWithoutTime), "cuEventCreate"));
  return context;
}

GpuContext::~GpuContext() { driver_.api().cuDevicePrimaryCtxRelease_v2(device_); }

absl::Status GpuContext::Enter() const {
  return driver_.Check(driver_.api().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

absl::Status GpuContext::Synchronise() const {
  return driver_.Check(driver_.api().cuCtxSynchronize(), "cuCtxSynchronize");
}

absl::Status GpuContext::Separate() const {
  RETURN_IF_ERROR(driver_.Check(driver_.api().cuCtxRecordEvent(context_, event_), "cuCtxRecordEvent"));
  return driver_.Check(driver_.api().cuCtxWaitEvent(context_, event_), "cuCtxWaitEvent");
}

absl::StatusOr<std::unique_ptr<GpuMemory>> GpuMemory::Create(const GpuContext* context, int64_t num_bytes) {
  const Driver& driver = context->driver();
  std::unique_ptr<GpuMemory> memory(new GpuMemory(context, num_bytes));
  const AllocationProperties properties = PropertiesOn(*context);
  ASSIGN_OR_RETURN(memory->mapped_bytes_, WholeUnits(*context, num_bytes));
  RETURN_IF_ERROR(driver.Check(
      driver.api().cuMemCreate(&memory->allocation_, memory->mapped_bytes_, &properties, /*flags=*/0),
      "cuMemCreate"));
  memory->allocated_ = true;
  RETURN_IF_ERROR(memory->Map(Access::kReadWrite));
  return memory;
}

absl::StatusOr<std::unique_ptr<GpuMemory>> GpuMemory::Import(const GpuContext* context, int fd,
                                                             int64_t num_bytes, Access access) {
  const Driver& driver = context->driver();
  std::unique_ptr<GpuMemory> memory(new GpuMemory(context, num_bytes));
  ASSIGN_OR_RETURN(memory->mapped_bytes_, WholeUnits(*context, num_bytes));
  void* const handle = reinterpret_cast<void*>(static_cast<uintptr_t>(fd));
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuMemImportFromShareableHandle(&memory->allocation_, handle, kFileDescriptor),
                   "cuMemImportFromShareableHandle"));
  memory->allocated_ = true;
  RETURN_IF_ERROR(memory->Map(access));
  return memory;
}

absl::StatusOr<std::unique_ptr<GpuMemory>> GpuMemory::Allocate(const GpuContext* context, int64_t num_bytes) {
  const Driver& driver = context->driver();
  std::unique_ptr<GpuMemory> memory(new GpuMemory(context, num_bytes));
  memory->mapped_bytes_ = static_cast<size_t>(std::max<int64_t>(num_bytes, 1));
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuMemAllocAsync(&memory->address_, memory->mapped_bytes_, /*stream=*/nullptr),
                   "cuMemAllocAsync"));
  memory->is_private_ = true;
  return memory;
}

absl::StatusOr<std::unique_ptr<GpuMemory>> GpuMemory::Lock(const GpuContext* context, HostPages pages) {
  const Driver& driver = context->driver();
  std::unique_ptr<GpuMemory> memory(new GpuMemory(context, pages.num_bytes()));
  memory->mapped_bytes_ = static_cast<size_t>(pages.num_bytes());
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuMemHostRegister_v2(pages.data(), memory->mapped_bytes_, kHostMemoryMapped),
                   "cuMemHostRegister"));
  memory->on_host_ = std::move(pages);
  RETURN_IF_ERROR(driver.Check(
      driver.api().cuMemHostGetDevicePointer_v2(&memory->address_, memory->on_host_.data(), /*flags=*/0),
      "cuMemHostGetDevicePointer"));
  return memory;
}

absl::Status GpuMemory::Map(Access access) {
  const Driver& driver = context_->driver();
  RETURN_IF_ERROR(driver.Check(
      driver.api().cuMemAddressReserve(&address_, mapped_bytes_, /*alignment=*/0, /*hint=*/0, /*flags=*/0),
      "cuMemAddressReserve"));
  RETURN_IF_ERROR(driver.Check(
      driver.api().cuMemMap(address_, mapped_bytes_, /*offset=*/0, allocation_, /*flags=*/0), "cuMemMap"));
  mapped_ = true;
  AccessDescription description;
  description.location = context_->device();
  description.flags = static_cast<int>(access);
  return driver.Check(driver.api().cuMemSetAccess(address_, mapped_bytes_, &description, /*count=*/1),
                      "cuMemSetAccess");
}

GpuMemory::~GpuMemory() {
  const DriverApi& api = context_->driver().api();
  if (is_private_) {
    api.cuMemFreeAsync(address_, /*stream=*/nullptr);
    return;
  }
  if (mapped_ || is_on_host())
    (void)context_->Synchronise();  // something may still be written there, or read
  if (is_on_host()) {
    api.cuMemHostUnregister(on_host_.data());
    return;
  }
  if (mapped_) api.cuMemUnmap(address_, mapped_bytes_);
  if (address_ != 0) api.cuMemAddressFree(address_, mapped_bytes_);
  if (allocated_) api.cuMemRelease(allocation_);
}

absl::StatusOr<UniqueFd> GpuMemory::Export() const {
  const Driver& driver = context_->driver();
  int fd = -1;
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuMemExportToShareableHandle(&fd, allocation_, kFileDescriptor, /*flags=*/0),
                   "cuMemExportToShareableHandle"));
  return UniqueFd(fd);
}

absl::Status GpuMemory::Fill(unsigned char value, int64_t offset, int64_t num_bytes) {
  if (num_bytes == 0) return absl::OkStatus();
  const Driver& driver = context_->driver();
  const Address address = address_ + static_cast<Address>(offset);
  return driver.Check(driver.api().cuMemsetD8_v2(address, value, static_cast<size_t>(num_bytes)),
                      "cuMemsetD8");
}

absl::Status GpuMemory::Write(const void* from, int64_t offset, int64_t num_bytes) {
  if (num_bytes == 0) return absl::OkStatus();
  const Driver& driver = context_->driver();
  const Address address = address_ + static_cast<Address>(offset);
  RETURN_IF_ERROR(driver.Check(driver.api().cuMemcpyHtoD_v2(address, from, static_cast<size_t>(num_bytes)),
                               "cuMemcpyHtoD"));
  return context_->Synchronise();
}

absl::Status GpuMemory::Read(void* to, int64_t offset, int64_t num_bytes) const {
  if (num_bytes == 0) return absl::OkStatus();
  if (is_on_host()) {
    RETURN_IF_ERROR(context_->Synchronise());
    std::memcpy(to, on_host_.data() + offset, static_cast<size_t>(num_bytes));
    return absl::OkStatus();
  }
  const Driver& driver = context_->driver();
  const Address address = address_ + static_cast<Address>(offset);
  return driver.Check(driver.api().cuMemcpyDtoH_v2(to, address, static_cast<size_t>(num_bytes)),
                      "cuMemcpyDtoH");
}

absl::Status GpuMemory::Copy(const GpuMemory& from) { return Copy(from, 0, 0, num_bytes_); }

absl::Status GpuMemory::Copy(const GpuMemory& from, int64_t from_offset, int64_t offset, int64_t num_bytes) {
  if (num_bytes == 0) return absl::OkStatus();
  const Driver& driver = context_->driver();
  const Address to = address_ + static_cast<Address>(offset);
  const Address start = from.address_ + static_cast<Address>(from_offset);
  const auto size = static_cast<size_t>(num_bytes);
  if (is_on_host() || from.is_on_host())
    return driver.Check(driver.api().cuMemcpyAsync(to, start, size, /*stream=*/nullptr), "cuMemcpyAsync");
  return driver.Check(driver.api().cuMemcpyDtoD_v2(to, start, size), "cuMemcpyDtoD");
}

absl::StatusOr<std::unique_ptr<MemoryPool>> MemoryPool::Open(const GpuContext* context) {
  const Driver& driver = context->driver();
  Pool pool = nullptr;
  RETURN_IF_ERROR(driver.Check(driver.api().cuDeviceGetDefaultMemPool(&pool, context->device()),
                               "cuDeviceGetDefaultMemPool"));
  uint64_t kept_bytes = std::numeric_limits<uint64_t>::max();  // until ReturnUnused()
  RETURN_IF_ERROR(driver.Check(driver.api().cuMemPoolSetAttribute(pool, kPoolReleaseThreshold, &kept_bytes),
                               "cuMemPoolSetAttribute"));
  return std::unique_ptr<MemoryPool>(new MemoryPool(context, pool));
}

int64_t MemoryPool::Attribute(int attribute) const {
  uint64_t value = 0;
  if (context_->driver().api().cuMemPoolGetAttribute(pool_, attribute, &value) != 0) return 0;
  return static_cast<int64_t>(value);
}

int64_t MemoryPool::unused_bytes() const { return Attribute(kPoolReservedBytes) - Attribute(kPoolUsedBytes); }

bool MemoryPool::ReturnUnused(int64_t kept_bytes) {
  if (!context_->Synchronise().ok()) return false;
  const int64_t before = Attribute(kPoolReservedBytes), kept = Attribute(kPoolUsedBytes) + kept_bytes;
  const Result result = context_->driver().api().cuMemPoolTrimTo(pool_, static_cast<size_t>(kept));
  return result == 0 && Attribute(kPoolReservedBytes) < before;
}

absl::StatusOr<std::unique_ptr<ForeignMemory>> ForeignMemory::Open(const GpuContext* context,
                                                                   const IpcHandle& handle) {
  const Driver& driver = context->driver();
  Address start = 0;
  RETURN_IF_ERROR(driver.Check(driver.api().cuIpcOpenMemHandle_v2(&start, handle, kLazyPeerAccess),
                               "cuIpcOpenMemHandle"));
  return std::unique_ptr<ForeignMemory>(new ForeignMemory(context, start));
}

ForeignMemory::~ForeignMemory() { context_->driver().api().cuIpcCloseMemHandle(start_); }

absl::StatusOr<Address> ForeignMemory::At(int64_t offset, int64_t num_bytes) const {
  const Driver& driver = context_->driver();
  Address begin = 0;
  size_t size = 0;
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuMemGetAddressRange_v2(&begin, &size, start_), "cuMemGetAddressRange"));
  const auto room = static_cast<int64_t>(begin + size - start_);
  if (offset < 0 || num_bytes < 0 || offset > room || num_bytes > room - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(num_bytes, " bytes from ", offset, " on of an allocation of ", room));
  }
  return start_ + static_cast<Address>(offset);
}

absl::Status ForeignMemory::Read(void* to, int64_t offset, int64_t num_bytes) const {
  const Driver& driver = context_->driver();
  ASSIGN_OR_RETURN(const Address from, At(offset, num_bytes));
  return driver.Check(driver.api().cuMemcpyDtoH_v2(to, from, static_cast<size_t>(num_bytes)), "cuMemcpyDtoH");
}

absl::StatusOr<std::unique_ptr<IdleProbe>> IdleProbe::Create(const GpuContext* context) {
  const Driver& driver = context->driver();
  std::unique_ptr<IdleProbe> probe(new IdleProbe(context));
  Module module = nullptr;
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleLoadData(&module, kProbe), "cuModuleLoadData"));
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleGetFunction(&probe->kernel_, module, "probe"),
                               "cuModuleGetFunction"));
  ASSIGN_OR_RETURN(probe->counter_, GpuMemory::Create(context, sizeof(uint32_t)));
  RETURN_IF_ERROR(probe->counter_->Fill(0, 0, sizeof(uint32_t)));
  std::vector<double> us;
  for (int i = 0; i < kProbes; ++i) {
    ASSIGN_OR_RETURN(const double taken, probe->Run());
    us.push_back(taken);
  }
  std::nth_element(us.begin(), us.begin() + kProbes / 2, us.end());
  probe->idle_us_ = us[kProbes / 2];
  return probe;
}

absl::StatusOr<double> IdleProbe::Run() {
  const Driver& driver = context_->driver();
  Address address = counter_->address();
  void* arguments[] = {&address};
  const absl::Time begin = absl::Now();
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
                   "cuLaunchKernel"));
  // Copies to the host have an engine of their own, on which others may be at work beside this kernel.
  uint32_t value = 0;
  RETURN_IF_ERROR(counter_->Read(&value, 0, sizeof(value)));
  return absl::ToDoubleMicroseconds(absl::Now() - begin);
}

absl::Status IdleProbe::AwaitIdle(double seconds_max) {
  const absl::Time deadline = absl::Now() + absl::Seconds(seconds_max);
  do {
    ASSIGN_OR_RETURN(const double us, Run());
    if (us <= kBusyFactor * idle_us_) return absl::OkStatus();
  } while (absl::Now() < deadline);
  return absl::DeadlineExceededError(absl::StrCat("the GPU has work after ", seconds_max, " s"));
}

}  // namespace warpsmith::cuda
