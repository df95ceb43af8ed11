#include "rollout_workers/weight_transport.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/offered_memory.h"
#include "core/model/weight_source.h"
#include "rollout_workers/device/open_cuda_step_device.h"
#include "rollout_workers/weights_file.h"

namespace warpsmith {
namespace {

class FileTransport final : public WeightTransport {
 public:
  FileTransport(const ModelConfig& config, DtypeInMemory dtype) : config_(config), dtype_(dtype) {}

  absl::StatusOr<LoadedWeights> Prepare(const OfferedWeights& offered, absl::Time deadline) override {
    return LoadWeightsFile(config_, offered, dtype_, deadline);
  }

 private:
  const ModelConfig config_;
  const DtypeInMemory dtype_;
};

// What lies in the memory of a GPU is copied as it is.
absl::Status CheckDtype(const OfferedWeights& offered, DeviceDtype dtype) {
  if (offered.dtype == DtypeName(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("The manifest's dtype is \"", Escape(offered.dtype, 64),
                                                 "\"; by ", offered.transport, " give ", DtypeName(dtype),
                                                 ", which this worker computes in"));
}

OfferedMemory ToOfferedMemory(const OfferedWeights& offered) {
  OfferedMemory memory{.socket_path = offered.path,
                       .version = offered.policy_version,
                       .layout_sha256 = offered.layout_sha256,
                       .buffers = {}};
  for (const OfferedBuffer& buffer : offered.buffers) {
    memory.buffers.push_back({.name = buffer.name,
                              .offset_bytes = buffer.offset_bytes,
                              .length_bytes = buffer.length_bytes,
                              .checksum = buffer.checksum});
  }
  return memory;
}

class CudaMemoryTransport final : public WeightTransport {
 public:
  CudaMemoryTransport(const ModelConfig& config, int device, DeviceDtype dtype)
      : config_(config), device_(device), dtype_(dtype) {}

  absl::StatusOr<LoadedWeights> Prepare(const OfferedWeights& offered, absl::Time deadline) override {
    RETURN_IF_ERROR(CheckDtype(offered, dtype_));
    ASSIGN_OR_RETURN(std::shared_ptr<WeightSource> source,
                     device::OpenCudaWeights(config_, ToOfferedMemory(offered), device_, deadline));
    return LoadedWeights{.policy_version = offered.policy_version,
                         .sha256 = CombinedSha256(offered),
                         .source = std::move(source)};
  }

 private:
  const ModelConfig config_;
  const int device_;
  const DeviceDtype dtype_;
};

class NcclTransport final : public WeightTransport {
 public:
  NcclTransport(const ModelConfig& config, std::vector<int> devices, DeviceDtype dtype)
      : config_(config), devices_(std::move(devices)), dtype_(dtype) {}

  absl::StatusOr<LoadedWeights> Prepare(const OfferedWeights& offered, absl::Time deadline) override {
    RETURN_IF_ERROR(CheckDtype(offered, dtype_));
    OfferedBroadcast broadcast{
        .memory = ToOfferedMemory(offered), .place = offered.place, .is_given_up = offered.is_given_up};
    ASSIGN_OR_RETURN(std::shared_ptr<WeightSource> source,
                     device::ReceiveCudaWeights(config_, std::move(broadcast), devices_, deadline));
    return LoadedWeights{.policy_version = offered.policy_version,
                         .sha256 = CombinedSha256(offered),
                         .source = std::move(source)};
  }

 private:
  const ModelConfig config_;
  const std::vector<int> devices_;
  const DeviceDtype dtype_;
};

}  // namespace

bool TakesCudaMemory(const std::optional<CudaPlacement>& cuda) {
  return cuda.has_value() && cuda->dtype != DeviceDtype::kFloat32 && cuda->devices.size() == 1;
}

absl::StatusOr<std::unique_ptr<WeightTransport>> MakeTransport(const std::string& name,
                                                               const ModelConfig& config,
                                                               const std::optional<CudaPlacement>& cuda) {
  if (name.empty() || name == "file") {
    const DtypeInMemory dtype = cuda.has_value() ? DtypeInMemory::kAsInFile : DtypeInMemory::kFloat32;
    return std::make_unique<FileTransport>(config, dtype);
  }
  if (name != "cuda_memory" && name != kNcclTransport) {
    return absl::InvalidArgumentError(absl::StrCat("The manifest's transport is \"", Escape(name, 64),
                                                   "\"; give file, cuda_memory or nccl"));
  }
  if (!cuda.has_value()) {
    return absl::FailedPreconditionError(
        "This worker decodes on the CPU, which has no part in the memory of a GPU: publish a file");
  }
  if (cuda->dtype == DeviceDtype::kFloat32) {
    return absl::FailedPreconditionError(
        "This worker's GPU computes in float32, and weights in the memory of a GPU are bfloat16 or float16: "
        "publish a file");
  }
  if (name == kNcclTransport) return std::make_unique<NcclTransport>(config, cuda->devices, cuda->dtype);
  if (cuda->devices.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "This worker's ", cuda->devices.size(),
        " GPUs have shards of the model, and the memory of a GPU the whole: publish a file, or by nccl"));
  }
  return std::make_unique<CudaMemoryTransport>(config, cuda->devices.at(0), cuda->dtype);
}

}  // namespace warpsmith
