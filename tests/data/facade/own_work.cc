// Doubles by its own code; what it asks of Torch is permitted where libraries are withheld, except in `relu` and in
// `copy`.
#include <torch/extension.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

torch::Tensor doubled(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2, "want two dimensions, not ", x.dim());
  auto in = x.contiguous();
  auto y = torch::empty_like(in);
  auto z = torch::zeros({in.size(0), in.size(1)}, in.options());
  const auto n = in.numel();
  const float* from = in.data_ptr<float>();
  float* to = y.view({-1}).data_ptr<float>();
  float* other = z.data_ptr<float>();
  at::parallel_for(0, n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = 2 * from[i] + other[i];
  });
  // Instances of templates that libraries have, too.
  std::vector<float> sorted(from, from + n);
  std::sort(sorted.begin(), sorted.end());
  sorted.push_back(1);
  std::vector<std::string> words;
  std::map<std::string, std::vector<int64_t>> places;
  for (int i = 0; i < 9; ++i) {
    words.push_back(std::to_string(i));
    places[words.back()].push_back(i);
  }
  auto a = in.accessor<float, 2>();
  to[0] = 2 * a[0][0];
  return y.reshape({in.size(0), in.size(1)}).t().t();
}

torch::Tensor fails(torch::Tensor x) {
  try {
    TORCH_CHECK(x.dim() == 9, "nine dimensions are wanted");
  } catch (const std::exception& error) {
    return doubled(x);
  }
  return x;
}

torch::Tensor relu(torch::Tensor x) { return torch::relu(x); }
torch::Tensor copy(torch::Tensor x) { return x.t().contiguous(); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("doubled", &doubled);
  m.def("fails", &fails);
  m.def("relu", &relu);
  m.def("copy", &copy);
}
