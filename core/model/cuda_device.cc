#include "core/model/cuda_device.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"

namespace warpsmith {
namespace {

constexpr int kMajorWanted = 9, kMinorWanted = 0;  // H100, H200: the kernels are built for sm_90a

// 4096 operations a cycle at 1.83 GHz: 989 TFLOP/s of the 132 that an H100 or H200 has.
constexpr double kFlopsAMultiprocessor = 4096 * 1.83e9;

absl::Status NoDriver(std::string_view user, cudaError_t error) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: %s; this program wants CUDA %d.%d and the driver has %d.%d (0.0: there is none). Use a machine "
      "with an H100 or H200 and update its driver",
      AbslView(user), cudaGetErrorString(error), runtime / 1000, runtime % 1000 / 10, driver / 1000,
      driver % 1000 / 10));
}

std::string UuidText(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppend(&text, absl::Hex(static_cast<unsigned char>(uuid.bytes[i]), absl::kZeroPad2));
  }
  return text;
}

}  // namespace

absl::StatusOr<CudaDevice> UseCudaDevice(int index, std::string_view user) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    return NoDriver(user, error);
  if (index < 0 || index >= count) {
    return absl::FailedPreconditionError(absl::StrCat(AbslView(user), ": there is no GPU ", index,
                                                      ", for there are ", count, ": name one from 0 on"));
  }
  cudaDeviceProp properties;
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"));
  if (properties.major != kMajorWanted || properties.minor != kMinorWanted) {
    return absl::FailedPreconditionError(
        absl::StrCat(AbslView(user), ": GPU ", index, " has compute capability ", properties.major, ".",
                     properties.minor, "; the kernels are for 9.0, H100 and H200"));
  }
  if (const cudaError_t error = cudaSetDevice(index); error != cudaSuccess) {
    return error == cudaErrorInsufficientDriver ? NoDriver(user, error) : CudaStatus(error, "cudaSetDevice");
  }
  return CudaDevice{index, properties.name, UuidText(properties.uuid),
                    properties.multiProcessorCount * kFlopsAMultiprocessor,
                    static_cast<int64_t>(properties.totalGlobalMem)};
}

absl::StatusOr<int64_t> FreeDeviceMemory() {
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  return static_cast<int64_t>(free);
}

}  // namespace warpsmith
