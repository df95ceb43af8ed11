#include "warpsmith_facade/functions.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "reward_service/facade/handle.h"

namespace warpsmith_facade {
namespace {

// Undefined means that there is none.
std::optional<at::Tensor> Optional(const Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(Real(tensor)) : std::nullopt;
}

}  // namespace

#define FACTORY(name)                                           \
  Tensor name(IntArrayRef size, const TensorOptions& options) { \
    return Wrap(at::name(Real(size), Real(options)));           \
  }
FACTORY(empty)
FACTORY(zeros)
FACTORY(ones)
FACTORY(rand)
FACTORY(randn)
#undef FACTORY

#define FACTORY_LIKE(name)                                        \
  Tensor name(const Tensor& like, const TensorOptions& options) { \
    return Wrap(at::name(Real(like), Real(options)));             \
  }
FACTORY_LIKE(empty_like)
FACTORY_LIKE(zeros_like)
FACTORY_LIKE(ones_like)
#undef FACTORY_LIKE

Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options) {
  return Wrap(at::full(Real(size), Real(value), Real(options)));
}
Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options) {
  return Wrap(at::full_like(Real(like), Real(value), Real(options)));
}
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  return Wrap(at::empty_strided(Real(size), Real(stride), Real(options)));
}
Tensor arange(const Scalar& end, const TensorOptions& options) {
  return Wrap(at::arange(Real(end), Real(options)));
}
Tensor arange(const Scalar& begin, const Scalar& end, const TensorOptions& options) {
  return Wrap(at::arange(Real(begin), Real(end), Real(options)));
}
Tensor arange(const Scalar& begin, const Scalar& end, const Scalar& step, const TensorOptions& options) {
  return Wrap(at::arange(Real(begin), Real(end), Real(step), Real(options)));
}
Tensor eye(int64_t n, const TensorOptions& options) { return Wrap(at::eye(n, Real(options))); }
Tensor from_blob(void* data, IntArrayRef size, const TensorOptions& options) {
  return Wrap(at::from_blob(data, Real(size), Real(options)));
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return Wrap(at::where(Real(condition), Real(a), Real(b)));
}
Tensor cat(TensorList tensors, int64_t dim) { return Wrap(at::cat(Real(tensors), dim)); }
Tensor stack(TensorList tensors, int64_t dim) { return Wrap(at::stack(Real(tensors), dim)); }
Tensor softplus(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  return Wrap(at::softplus(Real(x), Real(beta), Real(threshold)));
}
Tensor gelu(const Tensor& x) { return Wrap(at::gelu(Real(x))); }
Tensor silu(const Tensor& x) { return Wrap(at::silu(Real(x))); }
Tensor elu(const Tensor& x, const Scalar& alpha) { return Wrap(at::elu(Real(x), Real(alpha))); }
Tensor leaky_relu(const Tensor& x, const Scalar& slope) { return Wrap(at::leaky_relu(Real(x), Real(slope))); }
Tensor hardtanh(const Tensor& x, const Scalar& low, const Scalar& high) {
  return Wrap(at::hardtanh(Real(x), Real(low), Real(high)));
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return Wrap(at::linear(Real(x), Real(weight), Optional(bias)));
}

#define CONVOLUTION(name)                                                                                    \
  Tensor name(const Tensor& x, const Tensor& weight, const Tensor& bias, IntArrayRef stride,                 \
              IntArrayRef padding, IntArrayRef dilation, int64_t groups) {                                   \
    return Wrap(at::name(Real(x), Real(weight), Optional(bias), Real(stride), Real(padding), Real(dilation), \
                         groups));                                                                           \
  }
CONVOLUTION(conv1d)
CONVOLUTION(conv2d)
CONVOLUTION(conv3d)
#undef CONVOLUTION

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef output_padding, int64_t groups,
                        IntArrayRef dilation) {
  return Wrap(at::conv_transpose2d(Real(x), Real(weight), Optional(bias), Real(stride), Real(padding),
                                   Real(output_padding), groups, Real(dilation)));
}
Tensor max_pool2d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef dilation, bool ceil_mode) {
  return Wrap(at::max_pool2d(Real(x), Real(kernel), Real(stride), Real(padding), Real(dilation), ceil_mode));
}
Tensor avg_pool2d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  bool ceil_mode, bool count_include_pad) {
  return Wrap(
      at::avg_pool2d(Real(x), Real(kernel), Real(stride), Real(padding), ceil_mode, count_include_pad));
}
Tensor layer_norm(const Tensor& x, IntArrayRef shape, const Tensor& weight, const Tensor& bias, double eps) {
  return Wrap(at::layer_norm(Real(x), Real(shape), Optional(weight), Optional(bias), eps));
}

}  // namespace warpsmith_facade
