"""CUDA programs as models write them, to be compiled: native ones, and calls of load_inline.

Five kernels, each in some manners. What the manners use of Torch's API and of the standard library follows what 88
published answers use: functions over torch::Tensor with data_ptr, size and options first, then a dispatch macro and
checks, seldom accessors, a module of their own or a vector of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# By name: a kernel over `n` numbers in rows of `cols`, a block of 256 threads a row.
_KERNELS = {
    "chain": """
template <typename T>
__global__ void apply(const T* __restrict__ x, T* __restrict__ y, int64_t n, int cols) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
    const T v = T(2) * x[i] + T(1);
    y[i] = v > T(0) ? v * v : T(0);
  }
}
""",
    "row_sums": """
template <typename T>
__global__ void apply(const T* __restrict__ x, T* __restrict__ y, int64_t n, int cols) {
  __shared__ float partial[32];
  const int64_t row = blockIdx.x;
  if (row * cols >= n) return;
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += float(x[row * cols + c]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < int(blockDim.x) / 32; ++w) sum += partial[w];
    y[row] = T(sum);
  }
}
""",
    "softmax": """
template <typename T>
__global__ void apply(const T* __restrict__ x, T* __restrict__ y, int64_t n, int cols) {
  extern __shared__ float shared[];
  const int64_t row = blockIdx.x;
  if (row * cols >= n) return;
  float top = -1e30f, sum = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) top = fmaxf(top, float(x[row * cols + c]));
  shared[threadIdx.x] = top;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (int(threadIdx.x) < half) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  top = shared[0];
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += expf(float(x[row * cols + c]) - top);
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (int(threadIdx.x) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    y[row * cols + c] = T(expf(float(x[row * cols + c]) - top) / shared[0]);
}
""",
    "gelu": """
template <typename T>
__device__ T gelu(T v) {
  return T(0.5) * v * (T(1) + T(tanhf(0.7978845608f * (float(v) + 0.044715f * float(v) * float(v) * float(v)))));
}
template <typename T>
__global__ void apply(const T* __restrict__ x, T* __restrict__ y, int64_t n, int cols) {
#pragma unroll 4
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x))
    y[i] = gelu(x[i]);
}
""",
    "tiles": """
#define TILE 32
template <typename T>
__global__ void apply(const T* __restrict__ x, T* __restrict__ y, int64_t n, int cols) {
  __shared__ T tile[TILE][TILE + 1];
  const int rows = int(n / cols), tiles = (cols + TILE - 1) / TILE;
  const int row = blockIdx.x / tiles * TILE, col = blockIdx.x % tiles * TILE, c = threadIdx.x % TILE;
  for (int r = threadIdx.x / TILE; r < TILE; r += blockDim.x / TILE)
    if (row + r < rows && col + c < cols) tile[r][c] = x[int64_t(row + r) * cols + col + c];
  __syncthreads();
  for (int r = threadIdx.x / TILE; r < TILE; r += blockDim.x / TILE)
    if (col + r < cols && row + c < rows) y[int64_t(col + r) * rows + row + c] = tile[c][r];
}
""",
}
_LAUNCH = "<<<blocks, 256, 256 * sizeof(float), stream>>>"

# By manner: what stands before the kernel, and the host's part.
_NATIVE = {
    "plain": (
        "#include <cuda_runtime.h>\n#include <dlpack/dlpack.h>\n#include <cstdint>\n",
        "  const int blocks = int((n + 255) / 256);\n",
    ),
    "with_math": (
        "#include <cuda_runtime.h>\n#include <dlpack/dlpack.h>\n#include <stdint.h>\n#include <math.h>\n"
        "#include <float.h>\n#include <stdio.h>\n",
        "  const int blocks = int(ceil(n / 256.0));\n",
    ),
    "with_half": (
        "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <dlpack/dlpack.h>\n#include <cstdint>\n",
        "  const int blocks = int((n + 255) / 256);\n",
    ),
    "with_standard_library": (
        "#include <cuda_runtime.h>\n#include <dlpack/dlpack.h>\n#include <algorithm>\n#include <cstdint>\n",
        "  const int blocks = int(std::min<int64_t>((n + 255) / 256, 65535));\n",
    ),
}
_RUN = """
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs,
                   cudaStream_t stream) {
  const DLTensor* x = inputs[0];
  int64_t n = 1;
  for (int d = 0; d < x->ndim; ++d) n *= x->shape[d];
%s  apply<float>%s(static_cast<const float*>(x->data), static_cast<float*>(outputs[0]->data), n, int(x->shape[1]));
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
"""

_DECLARED = "torch::Tensor forward(torch::Tensor x);"
_BIND = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "forward"); }\n'
# By manner: includes, the host's part, and what load_inline is told beside.
_INLINE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pointers": (
        "#include <torch/extension.h>\n#include <cuda_runtime.h>\n",
        """torch::Tensor forward(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  const int blocks = (n + 255) / 256;
  apply<float><<<blocks, 256, 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));
  return y;
}
""",
        {"cpp_sources": [_DECLARED], "functions": ["forward"]},
    ),
    "options": (
        "#include <torch/extension.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n#include <math.h>\n",
        """torch::Tensor forward(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  const int rows = x.size(0), cols = x.size(1);
  auto y = torch::zeros({rows, cols}, x.options());
  dim3 threads(256), blocks((rows * cols + threads.x - 1) / threads.x);
  apply<float><<<blocks, threads, threads.x * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                               x.numel(), cols);
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
  return y;
}
""",
        {"cpp_sources": [_DECLARED], "functions": ["forward"], "extra_cuda_cflags": ["-O3", "--use_fast_math"]},
    ),
    "dispatch": (
        "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAGuard.h>\n"
        "#include <c10/cuda/CUDAException.h>\n",
        """torch::Tensor forward(torch::Tensor x) {
  const at::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty(x.sizes(), x.options());
  const int64_t n = x.numel();
  const auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "forward", ([&] {
    apply<scalar_t><<<(n + 255) / 256, 256, 1024, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n,
                                                            x.size(-1));
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
""",
        {"cpp_sources": [_DECLARED], "functions": ["forward"]},
    ),
    "own_module": (
        "#include <torch/extension.h>\n#include <vector>\n",
        """std::vector<torch::Tensor> forward(std::vector<torch::Tensor> inputs) {
  std::vector<torch::Tensor> outputs;
  for (auto& x : inputs) {
    auto y = torch::empty_like(x);
    const int blocks = std::min<int64_t>((x.numel() + 255) / 256, 1 << 20);
    apply<float><<<blocks, 256, 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), x.size(1));
    outputs.push_back(y);
  }
  return outputs;
}
"""
        + _BIND,
        {"cpp_sources": [""], "functions": []},
    ),
}


def native_programs() -> Iterator[dict[str, Any]]:
    """As cuda_compile_times takes them: name and source."""
    for kernel, text in _KERNELS.items():
        for manner, (includes, blocks) in _NATIVE.items():
            yield {"name": f"{kernel}, {manner}", "source": includes + text + _RUN % (blocks, _LAUNCH)}


def inline_programs() -> Iterator[dict[str, Any]]:
    """As cuda_compile_times takes them: name and the arguments of load_inline."""
    for kernel, text in _KERNELS.items():
        for manner, (includes, host, arguments) in _INLINE.items():
            source = {"name": f"{kernel}, {manner}", "cuda_sources": [includes + text + host]}
            yield {**source, "extra_cuda_cflags": [], **arguments}
