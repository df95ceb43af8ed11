#include "core/model/mapped_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/call_within.h"
#include "core/base/descriptor_server.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/buffer_checksums_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/staging_plan.h"

namespace warpsmith {
namespace {

int64_t BytesOf(const ParameterLayout& layout) {
  return BufferOffsets(layout).back() * int64_t{sizeof(uint16_t)};
}

void LogRate(const char* done, const ParameterLayout& layout, uint64_t version, absl::Time began) {
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  const double gigabytes = static_cast<double>(BytesOf(layout)) * 1e-9;
  LogInfo(absl::StrFormat("%s %.2f GB of weights of version %d in %.3f s, %.0f GB/s", done, gigabytes,
                          version, seconds, gigabytes / seconds));
}

absl::StatusOr<std::unique_ptr<SharedMemory>> MapOffered(const OfferedMemory& offered,
                                                         const ParameterLayout& layout, int device,
                                                         absl::Time deadline) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  ASSIGN_OR_RETURN(const FetchedDescriptor fetched, FetchDescriptor(offered.socket_path, deadline));
  if (const std::string wanted = MemoryText(offered.version, layout); fetched.text != wanted) {
    return absl::FailedPreconditionError(absl::StrCat(offered.socket_path.string(), " has \"",
                                                      Escape(fetched.text, 256), "\" and not \"", wanted,
                                                      "\": publish it again"));
  }
  return SharedMemory::Map(device, fetched.descriptor, BytesOf(layout));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedWeights>> MappedWeights::Open(const ModelConfig& config,
                                                                   OfferedMemory offered, int device,
                                                                   absl::Time deadline) {
  const absl::Time began = absl::Now();
  const ParameterLayout layout(config);
  RETURN_IF_ERROR(CheckOfferedMemory(offered, layout));
  ASSIGN_OR_RETURN(std::unique_ptr<SharedMemory> memory, MapOffered(offered, layout, device, deadline));
  std::unique_ptr<MappedWeights> weights(
      new MappedWeights(config, std::move(offered), device, std::move(memory)));
  RETURN_IF_ERROR(weights->Check(deadline));
  LogRate("mapped and checked", layout, weights->offered_.version, began);
  return weights;
}

MappedWeights::MappedWeights(const ModelConfig& config, OfferedMemory offered, int device,
                             std::unique_ptr<SharedMemory> memory)
    : layout_(config), offered_(std::move(offered)), device_(device), memory_(std::move(memory)) {}

// To unmap memory may wait for what the GPU does, which may never end.
MappedWeights::~MappedWeights() {
  constexpr absl::Duration kPatience = absl::Seconds(3);
  SharedMemory* const memory = memory_.release();
  if (!lost_ && !CallWithin(kPatience, [memory] { delete memory; }))
    LogWarning("mapped weights are not given back yet: their GPU is not done with what it does");
}

absl::Status MappedWeights::Check(absl::Time deadline) {
  const absl::StatusOr<std::vector<MemoryChecksum>> found =
      ChecksumBuffers(layout_, memory_->get(), nullptr, deadline);
  lost_ = MayStillRun(found.status());
  RETURN_IF_ERROR(found.status());
  return CheckArrived(offered_, *found, "at its sender");
}

int64_t MappedWeights::num_elements() const { return BufferOffsets(layout_).back(); }

absl::Status MappedWeights::CopyTo(uint16_t* elements, int device, absl::Time deadline) {
  if (device != device_) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights that were mapped for GPU ", device_, " are asked for on GPU ", device));
  }
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  const absl::Time began = absl::Now();
  const absl::StatusOr<std::vector<MemoryChecksum>> found =
      ChecksumBuffers(layout_, reinterpret_cast<std::byte*>(elements), memory_->get(), deadline);
  lost_ = MayStillRun(found.status());
  RETURN_IF_ERROR(found.status());
  RETURN_IF_ERROR(CheckArrived(offered_, *found, "after the copy"));
  LogRate("copied and checked", layout_, offered_.version, began);
  return absl::OkStatus();
}

}  // namespace warpsmith
