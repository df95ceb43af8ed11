#include "core/model/buffer_checksums_cuda.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/status_macros.h"
#include "core/kernels/memory_checksum_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/device_memory.h"
#include "core/model/event_arrival_cuda.h"
#include "core/model/handles_cuda.h"
#include "core/model/staging_plan.h"

namespace warpsmith {
namespace {

constexpr int64_t kElementBytes = 2;  // bfloat16 or float16

// What the device works with. It is never freed where the device is not known to be done.
struct Work {
  CudaStream stream;
  CudaEvent done;
  DeviceMemory sums;   // [num_buffers] MemoryChecksum
  PinnedBlock result;  // likewise
  std::optional<EventArrival> arrival;
};

absl::StatusOr<std::unique_ptr<Work>> Prepare(size_t sums_bytes) {
  auto work = std::make_unique<Work>();
  ASSIGN_OR_RETURN(work->stream, CreateStream());
  ASSIGN_OR_RETURN(work->done, CreateEvent());
  ASSIGN_OR_RETURN(work->sums, DeviceMemory::Zeros(static_cast<int64_t>(sums_bytes)));
  ASSIGN_OR_RETURN(work->result, AllocatePinned(sums_bytes));
  ASSIGN_OR_RETURN(work->arrival, EventArrival::Create());
  return work;
}

absl::Status Launch(const ParameterLayout& layout, std::byte* memory, const std::byte* from, Work& work) {
  const std::vector<int64_t> offsets = BufferOffsets(layout);
  cudaStream_t const stream = work.stream.get();
  // After what the caller has put on the default stream.
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(work.done.get(), nullptr), "recording an event"));
  RETURN_IF_ERROR(CudaStatus(cudaStreamWaitEvent(stream, work.done.get(), 0), "following a stream"));
  if (from != nullptr) {
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(memory, from, offsets.back() * kElementBytes, cudaMemcpyDeviceToDevice, stream),
        "copying weights"));
  }
  auto* const sums = reinterpret_cast<MemoryChecksum*>(work.sums.get());
  for (int i = 0; i < layout.num_buffers(); ++i) {
    RETURN_IF_ERROR(
        CudaStatus(LaunchMemoryChecksum(memory + offsets[i] * kElementBytes,
                                        (offsets[i + 1] - offsets[i]) * kElementBytes, sums + i, stream),
                   "checksums of weights"));
  }
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(work.result.get(), sums, static_cast<size_t>(layout.num_buffers()) * sizeof(*sums),
                      cudaMemcpyDeviceToHost, stream),
      "reading checksums"));
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(work.done.get(), stream), "recording an event"));
  return work.arrival->Follow(work.done.get());
}

}  // namespace

absl::StatusOr<std::vector<MemoryChecksum>> ChecksumBuffers(const ParameterLayout& layout, std::byte* memory,
                                                            const std::byte* from, absl::Time deadline) {
  std::vector<MemoryChecksum> checksums(layout.num_buffers());
  const size_t bytes = checksums.size() * sizeof(MemoryChecksum);
  ASSIGN_OR_RETURN(std::unique_ptr<Work> work, Prepare(bytes));
  absl::Status status = Launch(layout, memory, from, *work);
  if (status.ok()) status = work->arrival->Await(1, work->done.get(), deadline);
  if (!status.ok()) {
    (void)work.release();
    if (absl::IsDeadlineExceeded(status)) return status;
    return absl::InternalError(status.message());
  }
  std::memcpy(static_cast<void*>(checksums.data()), work->result.get(), bytes);
  return checksums;
}

}  // namespace warpsmith
