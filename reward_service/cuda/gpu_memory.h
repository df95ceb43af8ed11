// A process's use of one GPU: its context, and memory that can be shared with other processes.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_GPU_MEMORY_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_GPU_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "reward_service/cuda/driver.h"
#include "reward_service/cuda/host_pages.h"

namespace warpsmith::cuda {

// The GPU's primary context, which kernels and libraries of this process share. Takes 0.2 s and some 500 MiB of
// the GPU's memory. Whoever uses it, or what is made in it, has entered it first; Separate() for one thread at a time.
class GpuContext {
 public:
  static absl::StatusOr<std::unique_ptr<GpuContext>> Open(int index);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  const Driver& driver() const { return driver_; }
  Device device() const { return device_; }
  // Makes it the calling thread's.
  absl::Status Enter() const;
  // Waits until everything that this process asked for is done.
  absl::Status Synchronise() const;
  // What a program asked to persist in the cache is treated as all else there from now on. A GPU that cannot keep
  // anything there refuses, and has nothing to be reset.
  void ResetPersistingCache() const { (void)driver_.api().cuCtxResetPersistingL2Cache(); }
  // What is asked for from now on begins when everything before is done, on whatever streams. Does not wait.
  absl::Status Separate() const;

 private:
  GpuContext(const Driver& driver, Device device, Context context)
      : driver_(driver), device_(device), context_(context) {}

  const Driver& driver_;
  const Device device_;
  const Context context_;
  Event event_ = nullptr;
};

enum class Access { kRead = 1, kReadWrite = 3 };  // as CUmemAccess_flags

// Memory on a GPU, mapped here. Who imports it sees the same bytes. For one thread at a time.
class GpuMemory {
 public:
  // At least `num_bytes`, which may be 0; what is there before the first Fill() is anybody's.
  static absl::StatusOr<std::unique_ptr<GpuMemory>> Create(const GpuContext* context, int64_t num_bytes);
  // The same from the device's MemoryPool, that no other process can be given.
  static absl::StatusOr<std::unique_ptr<GpuMemory>> Allocate(const GpuContext* context, int64_t num_bytes);
  // The host's, locked there, which the GPU reads and writes across the bus ("Page-Locked Host Memory", CUDA C++
  // Programming Guide). It is there to be copied from and read: neither filled nor written.
  static absl::StatusOr<std::unique_ptr<GpuMemory>> Lock(const GpuContext* context, HostPages pages);
  // What Export() gave in another process, of the same `num_bytes`.
  static absl::StatusOr<std::unique_ptr<GpuMemory>> Import(const GpuContext* context, int fd,
                                                           int64_t num_bytes, Access access);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  Address address() const { return address_; }
  int64_t num_bytes() const { return num_bytes_; }
  // In whole units of the driver.
  int64_t mapped_bytes() const { return static_cast<int64_t>(mapped_bytes_); }
  bool is_on_host() const { return on_host_.data() != nullptr; }
  absl::StatusOr<UniqueFd> Export() const;

  // Done in the order in which they are asked for, as kernels on the default stream are. Fill() and Copy() do not wait:
  // each wait costs a turn on the GPU where other processes use it, too. Whoever shows the memory to another process
  // calls GpuContext::Synchronise() before. Write() and Read() return when they are done.
  absl::Status Fill(unsigned char value, int64_t offset, int64_t num_bytes);
  absl::Status Write(const void* from, int64_t offset, int64_t num_bytes);
  absl::Status Read(void* to, int64_t offset, int64_t num_bytes) const;
  absl::Status Copy(const GpuMemory& from);  // all of it, of the same size
  absl::Status Copy(const GpuMemory& from, int64_t from_offset, int64_t offset, int64_t num_bytes);

 private:
  GpuMemory(const GpuContext* context, int64_t num_bytes) : context_(context), num_bytes_(num_bytes) {}
  absl::Status Map(Access access);

  const GpuContext* const context_;
  const int64_t num_bytes_;
  Allocation allocation_ = 0;
  bool allocated_ = false;
  bool is_private_ = false;
  HostPages on_host_;
  Address address_ = 0;
  size_t mapped_bytes_ = 0;
  bool mapped_ = false;
};

// A device's memory pool, of which a process has one ("Stream Ordered Memory Allocator", CUDA Driver API Reference
// Manual). What is freed stays there for the next allocation, of whatever size: for new memory the driver takes a lock
// that is one for all GPUs of a host. For one thread at a time.
class MemoryPool {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryPool>> Open(const GpuContext* context);

  // What is there and nobody has. Some of it cannot be returned while somebody has memory beside it.
  int64_t unused_bytes() const;
  // Waits until everything that was asked for is done, and returns to the device what nobody has, but for so many
  // bytes. Whether any was returned.
  bool ReturnUnused(int64_t kept_bytes);

 private:
  MemoryPool(const GpuContext* context, Pool pool) : context_(context), pool_(pool) {}
  int64_t Attribute(int attribute) const;  // 0 where the driver fails, as it then does elsewhere

  const GpuContext* const context_;
  const Pool pool_;
};

// An allocation that another process names, one that cuMemAlloc() made, mapped here while this lives.
class ForeignMemory {
 public:
  // Whatever is wrong with the handle is an error. One in which the sizes were forged can break the context, as the
  // next use says.
  static absl::StatusOr<std::unique_ptr<ForeignMemory>> Open(const GpuContext* context,
                                                             const IpcHandle& handle);
  ~ForeignMemory();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;

  // Where so many bytes begin. OUT_OF_RANGE where the allocation has no such place.
  absl::StatusOr<Address> At(int64_t offset, int64_t num_bytes) const;
  absl::Status Read(void* to, int64_t offset, int64_t num_bytes) const;

 private:
  ForeignMemory(const GpuContext* context, Address start) : context_(context), start_(start) {}

  const GpuContext* const context_;
  const Address start_;
};

// Proves that a GPU has nothing to do: a kernel of one thread and a copy to the host, which take some microseconds on
// an idle GPU, and about a millisecond, the turn of another process, or its copy, where anything still runs.
class IdleProbe {
 public:
  // Measures what both take now: nobody else may use the GPU.
  static absl::StatusOr<std::unique_ptr<IdleProbe>> Create(const GpuContext* context);

  // The median of probes on the idle GPU [us].
  double idle_us() const { return idle_us_; }
  // One probe [us].
  absl::StatusOr<double> Run();
  // Probes until one shows that the GPU is idle. DEADLINE_EXCEEDED when none did in time.
  absl::Status AwaitIdle(double seconds_max);

 private:
  explicit IdleProbe(const GpuContext* context) : context_(context) {}

  const GpuContext* const context_;
  Function kernel_ = nullptr;
  std::unique_ptr<GpuMemory> counter_;
  double idle_us_ = 0;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_GPU_MEMORY_H_
