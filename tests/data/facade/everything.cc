// What answers use of Torch's C++ API; compiled on every tier of headers, it must give the same.
#include <torch/extension.h>

#include <vector>

namespace {

template <typename scalar_t>
void Square(const scalar_t* x, scalar_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] + scalar_t(1);
}

}  // namespace

torch::Tensor dispatched(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous, its strides are ", x.strides());
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "dispatched", [&] {
    Square<scalar_t>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  });
  return y;
}

at::Tensor by_type(const at::Tensor& x) {
  at::Tensor y = at::zeros(x.sizes(), x.options());
  AT_DISPATCH_ALL_TYPES(x.type().scalarType(), "by_type", ([&] {
                          auto* in = x.data<scalar_t>();
                          auto* out = y.data<scalar_t>();
                          for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] + in[i];
                        }));
  return y;
}

torch::Tensor accessors(torch::Tensor x) {
  auto out = torch::zeros({x.size(1), x.size(0)}, torch::TensorOptions().dtype(x.dtype()).device(x.device()));
  auto a = x.accessor<float, 2>();
  auto b = out.packed_accessor32<float, 2>();
  for (int i = 0; i < a.size(0); ++i) {
    for (int j = 0; j < a.size(1); ++j) b[j][i] = a[i][j];
  }
  return out;
}

torch::Tensor in_parallel(torch::Tensor x) {
  const auto n = x.numel();
  auto y = torch::empty({n}, x.options());
  const float* in = x.contiguous().data_ptr<float>();
  float* out = y.data_ptr<float>();
  at::parallel_for(0, n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = std::max(in[i], 0.0f);
  });
  return y.view_as(x);
}

torch::Tensor operators(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b) {
  auto y = torch::relu(torch::matmul(x, w.t()) + b) * 2 - 1;
  y += 0.5;
  y = y.sigmoid().mul(y).clamp(-1, 3) / (torch::exp(-y.abs()) + 1.0);
  y = torch::where(y > 0.2, y, y * 0.1);
  return 1.0 / (1 - torch::softmax(y, 1) * 0.5) + y.sum({1}, true) - torch::mean(y, {0}) + y.amax({1}, true);
}

torch::Tensor layers(torch::Tensor x, torch::Tensor weight, torch::optional<torch::Tensor> bias) {
  auto y = torch::conv2d(x, weight, bias ? *bias : torch::Tensor(), 1, 1);
  y = torch::max_pool2d(y, {2, 2}, 2);
  return torch::gelu(y).flatten(1).unsqueeze(0).squeeze(0).transpose(0, 1).contiguous();
}

std::vector<torch::Tensor> several(torch::Tensor x, int64_t dim) {
  std::vector<torch::Tensor> parts = x.chunk(2, dim);
  parts.push_back(torch::cat({parts[1], parts[0]}, dim));
  parts.push_back(torch::stack(x.unbind(0), 0).slice(0, 1));
  parts.push_back(x.narrow(0, 0, 1).clone().fill_(3));
  return parts;
}

std::tuple<torch::Tensor, torch::Tensor> pair(torch::Tensor x) { return torch::max(x, 1); }

torch::Tensor keywords(torch::Tensor x, double scale, bool negate, int times, const std::string& mode) {
  torch::NoGradGuard no_grad;
  auto y = x * scale;
  for (int i = 0; i < times; ++i) y.add_(x, 2);
  if (mode == "half") y = y / 2;
  return negate ? -y : y;
}

void in_place(torch::Tensor& x) {
  x[0] = torch::ones_like(x[0]);
  x.select(0, 1).copy_(x[0] + 1);
  x.mul_(2).abs_().sqrt_();
}

std::string describe(torch::Tensor x) {
  std::string text = x.is_cuda() ? "cuda" : "cpu";
  for (auto size : x.sizes()) text += " " + std::to_string(size);
  if (x.dtype() == torch::kFloat32 && x.scalar_type() == at::ScalarType::Float) text += " float";
  if (x.device().is_cpu() && x.device() == torch::Device(torch::kCPU) && x.dim() == 2) text += " matrix";
  return text + " " + std::to_string(x.element_size());
}

double numbers(std::vector<int64_t> shape, std::vector<double> values, torch::optional<double> extra) {
  double sum = extra.value_or(100.0);
  for (auto size : shape) sum += size;
  for (auto value : values) sum *= value;
  return sum + torch::full({2}, sum).to(torch::kFloat64)[1].item<double>();
}

int overloaded(int x) { return x + 1; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "everything";
  m.def("dispatched", &dispatched, "Squares and adds one");
  m.def("by_type", &by_type);
  m.def("accessors", &accessors);
  m.def("in_parallel", &in_parallel);
  m.def("operators", &operators);
  m.def("layers", &layers, py::arg("x"), py::arg("weight"), py::arg("bias") = py::none());
  m.def("several", &several);
  m.def("pair", &pair);
  m.def("keywords", &keywords, "With defaults", py::arg("x"), py::arg("scale") = 2.0,
        py::arg("negate") = false, py::arg("times") = 1, py::arg("mode") = "full");
  m.def("in_place", &in_place);
  m.def("describe", &describe);
  m.def("numbers", &numbers, py::arg("shape"), py::arg("values"), py::arg("extra") = 1.5);
  m.def("overloaded", &overloaded);
  m.def("overloaded", [](const std::string& text) { return text + "!"; });
}
