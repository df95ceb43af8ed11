"""Kernels of 0.1 to 20 ms with their tasks, the smallest within a core's second-level cache, the largest over 64 MB."""

from __future__ import annotations

_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
{body}


def get_inputs():
    return [torch.randn({rows}, {cols})]


def get_init_inputs():
    return []
"""
KERNEL = """
#include <dlpack/dlpack.h>
#include <cmath>
static int number_{number} = 0;
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {{
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int64_t rows = inputs[0]->shape[0], cols = inputs[0]->shape[1];
  number_{number} += 1;
{body}
  return 0;
}}
"""
_SOFTMAX = """
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < cols; ++c) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
  }
"""
_AFFINE = """
  const int64_t n = rows * cols;
  for (int64_t i = 0; i < n; ++i) {
    const float v = 2 * x[i] + 1;
    y[i] = v > 0 ? v * v : 0;
  }
"""
_GRAM = """
  for (int64_t r = 0; r < rows; ++r) {
    float* out = y + r * rows;
    for (int64_t s = 0; s < rows; ++s) out[s] = 0;
    for (int64_t s = 0; s < rows; ++s) {
      float sum = 0;
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) sum += x[r * cols + c] * x[s * cols + c];
      out[s] = sum;
    }
  }
"""
_AFFINE_MODEL = "        return torch.relu(2 * x + 1) ** 2"
CASES = {
    "softmax, 1 MB in all": (_TASK.format(body="        return torch.softmax(x, 1)", rows=128, cols=1024), _SOFTMAX),
    "affine chain, 8 MB": (_TASK.format(body=_AFFINE_MODEL, rows=1024, cols=1024), _AFFINE),
    "products of rows, 2 MB": (_TASK.format(body="        return x @ x.T", rows=256, cols=512), _GRAM),
    "affine chain, 64 MB": (_TASK.format(body=_AFFINE_MODEL, rows=2048, cols=4096), _AFFINE),
}
