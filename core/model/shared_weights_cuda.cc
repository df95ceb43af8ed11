#include "core/model/shared_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "core/base/status_macros.h"
#include "core/model/buffer_checksums_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/staging_plan.h"

namespace warpsmith {

absl::StatusOr<std::unique_ptr<SharedWeights>> SharedWeights::Create(const ModelConfig& config, int device) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  const int64_t bytes = BufferOffsets(ParameterLayout(config)).back() * int64_t{sizeof(__nv_bfloat16)};
  ASSIGN_OR_RETURN(std::unique_ptr<SharedMemory> memory, SharedMemory::Allocate(device, bytes));
  RETURN_IF_ERROR(CudaStatus(cudaMemset(memory->get(), 0, bytes), "clearing weights"));
  RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(nullptr), "clearing weights"));
  return std::unique_ptr<SharedWeights>(new SharedWeights(config, device, std::move(memory)));
}

SharedWeights::SharedWeights(const ModelConfig& config, int device, std::unique_ptr<SharedMemory> memory)
    : layout_(config), offsets_(BufferOffsets(layout_)), device_(device), memory_(std::move(memory)) {}

SharedWeights::~SharedWeights() {
  if (lost_) (void)memory_.release();
}

absl::StatusOr<OfferedMemory> SharedWeights::Offer(uint64_t version, const std::filesystem::path& socket_path,
                                                   absl::Time deadline) {
  Withdraw();
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "choosing a GPU"));
  const absl::StatusOr<std::vector<MemoryChecksum>> checksums =
      ChecksumBuffers(layout_, memory_->get(), nullptr, deadline);
  lost_ = lost_ || MayStillRun(checksums.status());
  RETURN_IF_ERROR(checksums.status());
  ASSIGN_OR_RETURN(UniqueFd descriptor, memory_->Export());
  ASSIGN_OR_RETURN(server_,
                   DescriptorServer::Start(socket_path, std::move(descriptor), MemoryText(version, layout_)));
  return OfferedMemory{.socket_path = socket_path,
                       .version = version,
                       .layout_sha256 = layout_.Sha256(),
                       .buffers = DescribeBuffers(layout_, *checksums)};
}

}  // namespace warpsmith
