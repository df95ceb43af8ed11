// The permitted operators (see jail/permitted.py) by the C++ API's entry points, which extensions call directly: the
// facade's functions lead to the same.
#include <ATen/Parallel.h>
#include <ATen/TensorIndexing.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <array>
#include <vector>

namespace warpsmith_facade {
namespace {

template <class T>
void Point(const at::Tensor& x) {
  (void)x.data_ptr<T>();
  (void)x.const_data_ptr<T>();
  (void)x.mutable_data_ptr<T>();
  if (x.numel() == 1) (void)x.item<T>();
}

void PointByType(const at::Tensor& x) {
  switch (x.scalar_type()) {
#define CASE(Type, Name)     \
  case at::ScalarType::Name: \
    return Point<Type>(x);
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, CASE)
#undef CASE
    default:
      return;
  }
}

void Describe(const at::Tensor& x) {
  PointByType(x);
  (void)x.data_ptr();
  (void)x.const_data_ptr();
  (void)x.mutable_data_ptr();
  (void)x.sizes();
  (void)x.strides();
  (void)x.sym_sizes();
  (void)x.options();
  (void)x.dtype();
  (void)x.device();
  (void)x.layout();
  (void)x.numel();
  (void)x.nbytes();
  (void)x.element_size();
  (void)x.storage_offset();
  (void)x.is_contiguous();
  (void)x.is_contiguous(at::MemoryFormat::ChannelsLast);
  (void)x.suggest_memory_format();
  (void)x.requires_grad();
  (void)x.is_cpu();
  (void)x.is_sparse();
  (void)x.is_same(x);
  (void)x.is_floating_point();
  (void)x.defined();
  (void)x.toString();
  (void)x.storage().nbytes();
  if (x.dim() > 0) {
    (void)x.size(-1);
    (void)x.stride(0);
  }
  if (x.numel() == 1) (void)x.item();
}

void View(const at::Tensor& x) {
  std::vector<at::Tensor> made = {x.view({-1}),
                                  x.reshape({-1}),
                                  x.flatten(),
                                  x.unsqueeze(0),
                                  x.squeeze(),
                                  x.detach(),
                                  x.contiguous(),
                                  x.alias(),
                                  x.view_as(x),
                                  x.reshape_as(x),
                                  x.expand_as(x),
                                  x.to(x.dtype()),
                                  x.to(at::kCPU),
                                  x.to(x.options()),
                                  x.to(x.scalar_type()),
                                  x.to(x.device(), x.scalar_type()),
                                  x.cpu(),
                                  x.type_as(x),
                                  x.toType(x.scalar_type()),
                                  x.as_strided(x.sizes(), x.strides()),
                                  x.variable_data(),
                                  x.tensor_data()};
  if (x.dim() > 0) {
    made.insert(made.end(), {x.select(0, 0), x.slice(0, 0, 1), x.narrow(0, 0, 1), x[0], x.movedim(0, -1)});
    for (const auto& parts : {x.chunk(2, 0), x.split(1, 0), x.unbind(0)})
      made.insert(made.end(), parts.begin(), parts.end());
    made.push_back(x.index({at::indexing::Slice(0, 1)}));
  }
  if (x.dim() == 2)
    made.insert(made.end(), {x.t(), x.transpose(0, 1), x.permute({1, 0}), x.flatten(0, 1), x.mT()});
  for (const at::Tensor& view : made) Describe(view);
  if (x.scalar_type() == at::kFloat && x.dim() == 2) {
    (void)x.accessor<float, 2>();
    (void)x.packed_accessor32<float, 2>();
    (void)x.packed_accessor64<float, 2>();
  }
}

std::vector<at::Tensor> Allocate(at::IntArrayRef shape, at::TensorOptions options) {
  std::vector<at::Tensor> made = {at::empty(shape, options), at::zeros(shape, options),
                                  at::ones(shape, options), at::full(shape, 1, options)};
  const at::Tensor like = made[0];
  made.insert(
      made.end(),
      {at::empty_like(like), at::zeros_like(like), at::ones_like(like), at::full_like(like, 1),
       at::empty_like(like, like.options()), at::zeros_like(like, like.options()),
       at::empty_strided(shape, like.strides(), options), like.new_empty(shape), like.new_zeros(shape),
       like.new_ones(shape), like.new_full(shape, 1), like.new_empty(shape, like.options()),
       like.new_zeros(shape, like.options()), at::from_blob(like.data_ptr(), shape, options),
       at::from_blob(like.data_ptr(), shape, like.strides(), options)});
  // As torch:: has them, with a variable around each.
  made.insert(made.end(), {torch::empty(shape, options), torch::zeros(shape, options),
                           torch::ones(shape, options), torch::full(shape, 1, options),
                           torch::empty_like(like), torch::zeros_like(like), torch::ones_like(like),
                           torch::full_like(like, 1), torch::empty_strided(shape, like.strides(), options),
                           torch::from_blob(like.data_ptr(), shape, options)});
  return made;
}

void Fill(const at::Tensor& x) {
  x.zero_();
  x.fill_(1);
  x.fill_(0.5);
  if (x.dim() == 2) x.t().fill_(1);
}

// In loops of programs' own, with their threads.
void Loop(const at::Tensor& x) {
  std::vector<char> seen(static_cast<size_t>(x.numel()), 0);
  at::parallel_for(0, x.numel(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)] = 1;
  });
  (void)at::parallel_reduce(
      0, x.numel(), 16, 0.0, [](int64_t, int64_t, double sum) { return sum; },
      [](double a, double b) { return a + b; });
  (void)at::get_num_threads();
  (void)at::in_parallel_region();
  (void)at::get_thread_num();
}

template <class Attempt>
void Refused(Attempt attempt) {
  try {
    attempt();
  } catch (const std::exception& error) {
    (void)error.what();
  }
}

void Refuse(const at::Tensor& x) {
  Refused([&] {
    TORCH_CHECK(x.dim() == 17, "expected 17 dims, not ", x.dim(), " of ", x.sizes(), x.scalar_type());
  });
  Refused([&] { (void)x.data_ptr<int64_t>(); });
  Refused([&] { (void)x.const_data_ptr<int64_t>(); });
  Refused([&] { (void)x.accessor<float, 7>(); });
  Refused([&] { (void)x.view({-7}); });
  Refused([&] { (void)x.view({3, 1 << 20}); });
  Refused([&] { (void)x.reshape({3, 1 << 20}); });
  Refused([&] { (void)x.size(19); });
  Refused([&] { (void)x.select(0, 1 << 20); });
  Refused([&] { (void)x.narrow(0, 0, 1 << 20); });
  Refused([&] { (void)at::empty({-1}); });
  Refused([&] { (void)x.item(); });
}

void Run() {
  const at::NoGradGuard no_grad;
  const std::array<std::vector<int64_t>, 6> shapes = {{{}, {1}, {3, 5}, {2, 3, 4, 5}, {7, 257}, {181, 211}}};
  for (const std::vector<int64_t>& shape : shapes) {
#define EACH(Type, Name)                                                                       \
  {                                                                                            \
    const at::TensorOptions options = at::TensorOptions().dtype(at::k##Name).device(at::kCPU); \
    for (const at::Tensor& x : Allocate(shape, options)) Describe(x);                          \
    const at::Tensor x = at::empty(shape, options);                                            \
    Fill(x);                                                                                   \
    View(x);                                                                                   \
  }
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, EACH)
#undef EACH
    Loop(at::empty(shape));
  }
  Refuse(at::empty({3, 5}));
}

}  // namespace
}  // namespace warpsmith_facade

// 0 when all of them ran.
extern "C" __attribute__((visibility("default"))) int warpsmith_facade_run_permitted() {
  try {
    warpsmith_facade::Run();
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}
