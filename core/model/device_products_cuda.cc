#include "core/model/device_products_cuda.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/model/cuda_status.h"

namespace warpsmith {

template <typename T>
absl::Status Product(const DeviceProducts<T>& products, const LinearShape& shape,
                     const LinearOperandsOf<T>& operands, int64_t rows, cudaStream_t stream, NextStart next) {
  const auto what = [&] {
    return absl::StrCat("product of ", rows, " rows, ", shape.columns, " columns and depth ", shape.depth);
  };
  if constexpr (kStreamsProducts<T>) {
    if (products.Streams(rows)) {
      const cudaError_t error =
          LaunchStreamedLinear(shape, rows, operands, stream, KernelStart::kBesideFormer, next);
      return error == cudaSuccess ? absl::OkStatus() : CudaStatus(error, what());
    }
  }
  const cublasStatus_t status = products.plans->Launch(shape, rows, operands, stream);
  return status == CUBLAS_STATUS_SUCCESS ? absl::OkStatus() : CublasStatus(status, what());
}

template absl::Status Product(const DeviceProducts<__nv_bfloat16>&, const LinearShape&,
                              const LinearOperandsOf<__nv_bfloat16>&, int64_t, cudaStream_t, NextStart);
template absl::Status Product(const DeviceProducts<__half>&, const LinearShape&,
                              const LinearOperandsOf<__half>&, int64_t, cudaStream_t, NextStart);
template absl::Status Product(const DeviceProducts<float>&, const LinearShape&,
                              const LinearOperandsOf<float>&, int64_t, cudaStream_t, NextStart);

absl::StatusOr<DeviceMemory> EvictingMemory(int device, int64_t& bytes) {
  int cache = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "size of the cache"));
  bytes = 2 * static_cast<int64_t>(cache);
  return DeviceMemory::Zeros(std::max<int64_t>(bytes, 1));
}

}  // namespace warpsmith
