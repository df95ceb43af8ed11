"""Native CUDA programs of 10 µs to 1 ms on an H100, each faster than its task's eager reference.

The times are what the kernels were written for; what they take is what the benchmark measures. The affine chain moves
each byte once. The running sums give a column to a thread, so that they wait for memory and their inputs stay small
enough for the oracle, which works on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.randn({rows}, {cols})]


def get_init_inputs():
    return []
"""
# NAME is part of a function's name, so that programs differ that do the same.
_SOURCE = """
#include <cuda_runtime.h>
#include <dlpack/dlpack.h>
#include <cstdint>

{kernel}

extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs,
                   cudaStream_t stream) {{
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int rows = static_cast<int>(inputs[0]->shape[0]), cols = static_cast<int>(inputs[0]->shape[1]);
{launch}
  return static_cast<int>(cudaGetLastError());
}}
"""
# A float4 a thread: the number of elements is a multiple of four.
_AFFINE = """
__device__ float chain(float v) {
  v = 2 * v + 1;
  return v > 0 ? v * v : 0;
}
__global__ void kernel_NAME(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 v = x[i];
  y[i] = make_float4(chain(v.x), chain(v.y), chain(v.z), chain(v.w));
}
"""
_AFFINE_LAUNCH = """
  const int n = rows * cols / 4;
  kernel_NAME<<<(n + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const float4*>(x),
                                                   reinterpret_cast<float4*>(y), n);
"""
# Sixteen loads are under way at once: rows are a multiple of sixteen, columns of 32.
_SUMS = """
__global__ void kernel_NAME(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int r = 0; r < rows; r += 16) {
    float v[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) v[k] = x[(r + k) * cols + c];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      sum += v[k];
      y[(r + k) * cols + c] = 0.5f * sum + v[k];
    }
  }
}
"""
_SUMS_LAUNCH = """
  kernel_NAME<<<cols / 32, 32, 0, stream>>>(x, y, rows, cols);
"""


@dataclass(frozen=True)
class TimedKernel:
    """A task and a native program for it."""

    task: str
    template: str

    def source(self, name: str) -> str:
        """The program, whose kernel has `name` in its own."""
        return self.template.replace("NAME", name)

    def reference_as_candidate(self, name: str) -> str:
        """The task's model as an answer, with a variable of that name."""
        return self.task.replace("class Model(", f"number_{name} = 0\n\n\nclass ModelNew(")


def affine(rows: int, cols: int) -> TimedKernel:
    """A chain of element-wise operations, which moves each byte once; rows times cols is a multiple of four."""
    task = _TASK.format(expression="torch.relu(2 * x + 1) ** 2", rows=rows, cols=cols)
    return TimedKernel(task, _SOURCE.format(kernel=_AFFINE, launch=_AFFINE_LAUNCH))


def _sums(rows: int, cols: int) -> TimedKernel:
    task = _TASK.format(expression="0.5 * torch.cumsum(x, 0) + x", rows=rows, cols=cols)
    return TimedKernel(task, _SOURCE.format(kernel=_SUMS, launch=_SUMS_LAUNCH))


KERNELS = {
    "affine chain, 10 us": affine(1024, 1280),
    "affine chain, 50 us": affine(4096, 4096),
    "running sums, 200 us": _sums(4096, 1024),
    "running sums, 1 ms": _sums(20480, 512),
}
