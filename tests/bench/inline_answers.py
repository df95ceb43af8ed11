"""KernelBench answers with inline C++, as models write them: five tasks, each in a dozen manners of using Torch's API.

The manners follow what 88 published answers use (functions over torch::Tensor with data_ptr, size, options, a dispatch
macro, checks, a module of their own); a few call operators that Torch's light headers have, or its C++ modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ROWS, COLS = 512, 1024  # one program names the rows


@dataclass(frozen=True)
class InlineAnswer:
    """A task and a program for it. `source` alone is the C++."""

    name: str
    reference: str
    answer: str
    source: str


# By task: the reference's expression, and C++ that turns a row `in` of `cols` numbers into `out`.
_TASKS = {
    "chain": (
        "torch.relu(2 * x + 1) ** 2",
        "for (int64_t j = 0; j < cols; ++j) { T v = 2 * in[j] + 1; v = v > 0 ? v : T(0); out[j] = v * v; }",
    ),
    "softmax": (
        "torch.softmax(x, 1)",
        "T top = in[0], sum = 0;\n"
        "  for (int64_t j = 1; j < cols; ++j) top = in[j] > top ? in[j] : top;\n"
        "  for (int64_t j = 0; j < cols; ++j) { out[j] = std::exp(in[j] - top); sum += out[j]; }\n"
        "  for (int64_t j = 0; j < cols; ++j) out[j] /= sum;",
    ),
    "normalise": (
        "(x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, unbiased=False, keepdim=True) + 1e-5)",
        "T mean = 0, square = 0;\n"
        "  for (int64_t j = 0; j < cols; ++j) mean += in[j];\n  mean /= cols;\n"
        "  for (int64_t j = 0; j < cols; ++j) square += (in[j] - mean) * (in[j] - mean);\n"
        "  const T scale = 1 / std::sqrt(square / cols + T(1e-5));\n"
        "  for (int64_t j = 0; j < cols; ++j) out[j] = (in[j] - mean) * scale;",
    ),
    "swish": (
        "x * torch.sigmoid(x) + 0.5 * x",
        "for (int64_t j = 0; j < cols; ++j) out[j] = in[j] / (1 + std::exp(-in[j])) + T(0.5) * in[j];",
    ),
    "scale_by_top": (
        "x / x.abs().amax(1, keepdim=True).clamp(min=1e-6)",
        "T top = T(1e-6);\n"
        "  for (int64_t j = 0; j < cols; ++j) top = std::max(top, std::abs(in[j]));\n"
        "  for (int64_t j = 0; j < cols; ++j) out[j] = in[j] / top;",
    ),
}

_ROW = "template <typename T>\nstatic void one_row(const T* in, T* out, int64_t cols) {\n  %s\n}\n"
_BIND = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def("forward", &forward, "forward");\n}\n'

# By manner: C++ around `one_row`, and the arguments of load_inline beyond the name.
_MANNERS = {
    "pointers": (
        """torch::Tensor forward(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  for (int64_t i = 0; i < x.size(0); ++i) one_row(in + i * x.size(1), out + i * x.size(1), x.size(1));
  return y;
}
""",
        'functions=["forward"]',
    ),
    "dispatch": (
        """#include <vector>
torch::Tensor forward(torch::Tensor x) {
  const auto rows = x.size(0), cols = x.size(1);
  auto y = torch::zeros({rows, cols}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "forward", ([&] {
    for (int64_t i = 0; i < rows; ++i)
      one_row<scalar_t>(x.data_ptr<scalar_t>() + i * cols, y.data_ptr<scalar_t>() + i * cols, cols);
  }));
  return y;
}
"""
        + _BIND,
        "",
    ),
    "deprecated": (
        """at::Tensor forward(at::Tensor x) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.type().scalarType(), "forward", [&] {
    const int n = x.size(0), cols = x.size(1);
    for (int i = 0; i < n; ++i) one_row(x.data<scalar_t>() + i * cols, y.data<scalar_t>() + i * cols, cols);
  });
  return y;
}
"""
        + _BIND,
        "",
    ),
    "checks": (
        """#define CHECK_CPU(t) TORCH_CHECK(!t.is_cuda(), #t " must be a CPU tensor")
#define CHECK_INPUT(t) CHECK_CPU(t); TORCH_CHECK(t.is_contiguous(), #t " must be contiguous, has ", t.strides())
torch::Tensor forward(const torch::Tensor& x) {
  CHECK_INPUT(x);
  TORCH_CHECK(x.dim() == 2 && x.dtype() == torch::kFloat32, "a float matrix, not ", x.dim(), " of ", x.dtype());
  torch::Tensor y = torch::empty({x.size(0), x.size(1)}, torch::TensorOptions().dtype(torch::kFloat32));
  for (int64_t i = 0; i < x.size(0); ++i)
    one_row(x.data_ptr<float>() + i * x.stride(0), y.data_ptr<float>() + i * y.stride(0), x.size(1));
  return y;
}
""",
        'functions=["forward"], verbose=False',
    ),
    "accessors": (
        """torch::Tensor forward(torch::Tensor x) {
  x = x.contiguous();
  auto y = torch::zeros_like(x);
  auto a = x.accessor<float, 2>();
  auto b = y.accessor<float, 2>();
  for (int64_t i = 0; i < a.size(0); ++i) one_row(&a[i][0], &b[i][0], a.size(1));
  return y;
}
""",
        'functions=["forward"]',
    ),
    "openmp": (
        """#include <omp.h>
torch::Tensor forward(torch::Tensor input) {
  auto x = input.contiguous();
  auto y = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.numel() / rows;
  const float* __restrict__ in = x.data_ptr<float>();
  float* __restrict__ out = y.data_ptr<float>();
#pragma omp parallel for
  for (int64_t i = 0; i < rows; ++i) one_row(in + i * cols, out + i * cols, cols);
  return y;
}
""",
        'functions=["forward"], extra_cflags=["-O3", "-fopenmp", "-march=native"], extra_ldflags=["-fopenmp"]',
    ),
    "parallel_for": (
        """#include <ATen/Parallel.h>
torch::Tensor forward(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t cols = x.size(-1);
  at::parallel_for(0, x.size(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      one_row(x.data_ptr<float>() + i * cols, y.data_ptr<float>() + i * cols, cols);
  });
  return y;
}
""",
        'functions="forward", extra_cflags=["-O3"]',
    ),
    "by_reference": (
        """#include <iostream>
void forward_out(const torch::Tensor& x, torch::Tensor& y) {
  for (int64_t i = 0; i < x.size(0); ++i)
    one_row(x.data_ptr<float>() + i * x.size(1), y.data_ptr<float>() + i * x.size(1), x.size(1));
}
torch::Tensor forward(torch::Tensor x) {
  torch::Tensor y = torch::empty(x.sizes(), torch::TensorOptions().dtype(x.dtype()).device(x.device()));
  if (!y.defined()) std::cerr << "no memory" << std::endl;
  forward_out(x, y);
  return y;
}
""",
        'functions=["forward"], extra_cflags=["-O3", "-ffast-math"]',
    ),
    "a_class": (
        """#include <cmath>
#include <stdexcept>
struct Rows {
  explicit Rows(const at::Tensor& t) : data(t.data_ptr<float>()), count(t.size(0)), width(t.size(1)) {
    if (t.scalar_type() != at::ScalarType::Float) throw std::invalid_argument("floats only");
  }
  float* row(int64_t i) const { return data + i * width; }
  float* data;
  int64_t count, width;
};
torch::Tensor forward(torch::Tensor x) {
  torch::NoGradGuard no_grad;
  auto y = x.clone();
  const Rows from(x), to(y);
  for (int64_t i = 0; i < from.count; ++i) one_row(from.row(i), to.row(i), from.width);
  return y;
}
"""
        + _BIND,
        "extra_cflags=['-O2']",
    ),
    "scalars": (
        """torch::Tensor forward(torch::Tensor x, int64_t rows, double unused, bool contiguous) {
  if (contiguous) x = x.contiguous();
  std::vector<float> buffer(x.size(1));
  auto y = torch::full({rows, x.size(1)}, unused, x.options());
  for (int64_t i = 0; i < rows; ++i) {
    one_row(x.data_ptr<float>() + i * x.size(1), buffer.data(), x.size(1));
    std::copy(buffer.begin(), buffer.end(), y.data_ptr<float>() + i * x.size(1));
  }
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, py::arg("x"), py::arg("rows") = 512, py::arg("unused") = 0.0,
        py::arg("contiguous") = true);
}
""",
        "",
    ),
    "rows_of_tensors": (
        """torch::Tensor forward(torch::Tensor x) {
  std::vector<torch::Tensor> rows;
  for (auto& row : x.unbind(0)) {
    auto out = torch::empty_like(row);
    one_row(row.data_ptr<float>(), out.data_ptr<float>(), row.numel());
    rows.push_back(out);
  }
  return torch::stack(rows);
}
""",
        'functions=["forward"]',
    ),
}

# Programs that ask for more of Torch than a facade has: a row of other operators, and its C++ modules.
_BEYOND = {
    "index_put": (
        """torch::Tensor forward(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.size(0); ++i)
    one_row(x.data_ptr<float>() + i * x.size(1), y.data_ptr<float>() + i * x.size(1), x.size(1));
  return y.index({torch::indexing::Slice(0, x.size(0))});
}
""",
        ("chain", "softmax", "normalise"),
    ),
    "modules": (
        """torch::Tensor forward(torch::Tensor x) {
  torch::nn::Identity identity;
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.size(0); ++i)
    one_row(x.data_ptr<float>() + i * x.size(1), y.data_ptr<float>() + i * x.size(1), x.size(1));
  return identity->forward(y);
}
""",
        ("chain", "swish"),
    ),
}

_REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.randn({rows}, {cols})]


def get_init_inputs():
    return []
"""

_ANSWER = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
{source}"""

extension = load_inline(name="{name}", cpp_sources=source{options})


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.forward(x)
'''


def _answer(task: str, manner: str, code: str, options: str) -> InlineAnswer:
    expression, row = _TASKS[task]
    source = f"#include <torch/extension.h>\n{_ROW % row}{code}"
    name = f"{task}_{manner}"
    answer = _ANSWER.format(source=source, name=name, options=f", {options}" if options else "")
    return InlineAnswer(name, _REFERENCE.format(expression=expression, rows=ROWS, cols=COLS), answer, source)


def inline_answers() -> Iterator[InlineAnswer]:
    """Sixty, in an order that mixes tasks and manners."""
    for code_options, manner in zip(_MANNERS.values(), _MANNERS, strict=True):
        for task in _TASKS:
            yield _answer(task, manner, *code_options)
    for manner, (code, tasks) in _BEYOND.items():
        for task in tasks:
            yield _answer(task, manner, code, 'functions=["forward"]')
