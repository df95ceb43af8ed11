// The CUDA half of a program, in the manners of published answers: kernels over element types, accessors, streams,
// guards, checks. Its functions are bound by everything_cuda.cc.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_fp16.h>
#include <torch/types.h>

#include <algorithm>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_CONTIGUOUS(x)

namespace {

constexpr int kThreads = 256;

template <typename scalar_t>
__global__ void Leaky(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, float slope, int64_t n) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x) {
    const float value = static_cast<float>(x[i]);
    y[i] = static_cast<scalar_t>(value > 0 ? value : value * slope);
  }
}

template <typename scalar_t>
__global__ void RowSums(const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
                        torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> sums) {
  __shared__ float partial[kThreads];
  float sum = 0;
  for (int i = threadIdx.x; i < x.size(1); i += blockDim.x) sum += static_cast<float>(x[blockIdx.x][i]);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<scalar_t>(partial[0]);
}

__global__ void HalfAdd(const __half2* a, const __half2* b, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __hadd2(a[i], b[i]);
}

}  // namespace

torch::Tensor leaky(torch::Tensor x, double slope) {
  CHECK_INPUT(x);
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  const dim3 grid(std::min<int64_t>((n + kThreads - 1) / kThreads, 65535));
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "leaky", ([&] {
        Leaky<scalar_t><<<grid, kThreads, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(),
                                                       static_cast<float>(slope), n);
      }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

torch::Tensor row_sums(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() == 2, "x has ", x.dim(), " dimensions, want 2");
  TORCH_CHECK(x.is_cuda(), "x is on ", x.device());
  auto sums = torch::zeros({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_sums", [&] {
    RowSums<scalar_t>
        <<<x.size(0), kThreads>>>(x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
                                  sums.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>());
  });
  AT_CUDA_CHECK(cudaGetLastError());
  return sums;
}

torch::Tensor half_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.scalar_type() == torch::kHalf && a.sizes() == b.sizes(), "two tensors of half, of one shape");
  TORCH_CHECK(a.is_cuda(), "a must be on a GPU");
  auto out = torch::empty_like(a);
  const int n = static_cast<int>(a.numel() / 2);
  HalfAdd<<<(n + 255) / 256, 256>>>(reinterpret_cast<const __half2*>(a.data_ptr<at::Half>()),
                                    reinterpret_cast<const __half2*>(b.data_ptr<at::Half>()),
                                    reinterpret_cast<__half2*>(out.data_ptr<at::Half>()), n);
  return out;
}

// Computes nothing on a GPU.
std::vector<int64_t> grid_of(torch::Tensor x, int64_t tile) {
  std::vector<int64_t> grid;
  for (const int64_t size : x.sizes()) grid.push_back((size + tile - 1) / tile);
  return grid;
}
