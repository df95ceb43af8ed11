// Torch's functions over tensors that answers use: factories, operators, layers.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_FUNCTIONS_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_FUNCTIONS_H_

#include "warpsmith_facade/tensor.h"

namespace warpsmith_facade {

Tensor empty(IntArrayRef size, const TensorOptions& options = {});
Tensor zeros(IntArrayRef size, const TensorOptions& options = {});
Tensor ones(IntArrayRef size, const TensorOptions& options = {});
Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options = {});
Tensor rand(IntArrayRef size, const TensorOptions& options = {});
Tensor randn(IntArrayRef size, const TensorOptions& options = {});
Tensor empty_like(const Tensor& like, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& like, const TensorOptions& options = {});
Tensor ones_like(const Tensor& like, const TensorOptions& options = {});
Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options = {});
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options = {});
Tensor arange(const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& begin, const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& begin, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
Tensor eye(int64_t n, const TensorOptions& options = {});
// Borrows `data`, which must outlive the tensor.
Tensor from_blob(void* data, IntArrayRef size, const TensorOptions& options = {});

// What guards take.
inline optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? optional<Device>(tensor.device()) : optional<Device>();
}

#define UNARY(name) \
  inline Tensor name(const Tensor& self) { return self.name(); }
#define UNARY_IN_PLACE(name) \
  inline Tensor& name##_(Tensor& self) { return self.name##_(); }
#define BINARY(name) \
  inline Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); }
#define COMPARE(name)                                                                      \
  inline Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); } \
  inline Tensor name(const Tensor& self, const Scalar& other) { return self.name(other); }
#include "warpsmith_facade/operators.inc"
#undef UNARY
#undef UNARY_IN_PLACE
#undef BINARY
#undef COMPARE

inline Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha = 1) { return a.add(b, alpha); }
inline Tensor add(const Tensor& a, const Scalar& b, const Scalar& alpha = 1) { return a.add(b, alpha); }
inline Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha = 1) { return a.sub(b, alpha); }
inline Tensor sub(const Tensor& a, const Scalar& b, const Scalar& alpha = 1) { return a.sub(b, alpha); }
inline Tensor mul(const Tensor& a, const Tensor& b) { return a.mul(b); }
inline Tensor mul(const Tensor& a, const Scalar& b) { return a.mul(b); }
inline Tensor div(const Tensor& a, const Tensor& b) { return a.div(b); }
inline Tensor div(const Tensor& a, const Scalar& b) { return a.div(b); }
inline Tensor pow(const Tensor& a, const Tensor& b) { return a.pow(b); }
inline Tensor pow(const Tensor& a, const Scalar& b) { return a.pow(b); }
inline Tensor clamp(const Tensor& x, const optional<Scalar>& low, const optional<Scalar>& high = nullopt) {
  return x.clamp(low, high);
}
inline Tensor clamp_min(const Tensor& x, const Scalar& low) { return x.clamp_min(low); }
inline Tensor clamp_max(const Tensor& x, const Scalar& high) { return x.clamp_max(high); }
inline Tensor sum(const Tensor& x) { return x.sum(); }
inline Tensor sum(const Tensor& x, IntArrayRef dims, bool keepdim = false) { return x.sum(dims, keepdim); }
inline Tensor mean(const Tensor& x) { return x.mean(); }
inline Tensor mean(const Tensor& x, IntArrayRef dims, bool keepdim = false) { return x.mean(dims, keepdim); }
inline Tensor amax(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false) {
  return x.amax(dims, keepdim);
}
inline Tensor amin(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false) {
  return x.amin(dims, keepdim);
}
inline Tensor max(const Tensor& x) { return x.max(); }
inline Tensor min(const Tensor& x) { return x.min(); }
inline Tensor max(const Tensor& a, const Tensor& b) { return a.maximum(b); }
inline Tensor min(const Tensor& a, const Tensor& b) { return a.minimum(b); }
inline std::tuple<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.max(dim, keepdim);
}
inline std::tuple<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.min(dim, keepdim);
}
inline Tensor argmax(const Tensor& x, optional<int64_t> dim = nullopt, bool keepdim = false) {
  return x.argmax(dim, keepdim);
}
inline Tensor argmin(const Tensor& x, optional<int64_t> dim = nullopt, bool keepdim = false) {
  return x.argmin(dim, keepdim);
}
inline Tensor cumsum(const Tensor& x, int64_t dim) { return x.cumsum(dim); }
inline Tensor cumprod(const Tensor& x, int64_t dim) { return x.cumprod(dim); }
inline Tensor softmax(const Tensor& x, int64_t dim) { return x.softmax(dim); }
inline Tensor log_softmax(const Tensor& x, int64_t dim) { return x.log_softmax(dim); }
inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return x.transpose(a, b); }
inline Tensor reshape(const Tensor& x, IntArrayRef size) { return x.reshape(size); }
inline Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1) {
  return x.flatten(first, last);
}
inline Tensor unsqueeze(const Tensor& x, int64_t dim) { return x.unsqueeze(dim); }
inline Tensor clone(const Tensor& x) { return x.clone(); }
inline Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return x.addmm(a, b, beta, alpha);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor cat(TensorList tensors, int64_t dim = 0);
Tensor stack(TensorList tensors, int64_t dim = 0);
Tensor softplus(const Tensor& x, const Scalar& beta = 1, const Scalar& threshold = 20);
Tensor gelu(const Tensor& x);
Tensor silu(const Tensor& x);
Tensor elu(const Tensor& x, const Scalar& alpha = 1);
Tensor leaky_relu(const Tensor& x, const Scalar& slope = 0.01);
Tensor hardtanh(const Tensor& x, const Scalar& low = -1, const Scalar& high = 1);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
              IntArrayRef padding = int64_t{0}, IntArrayRef dilation = 1, int64_t groups = 1);
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
              IntArrayRef padding = int64_t{0}, IntArrayRef dilation = 1, int64_t groups = 1);
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
              IntArrayRef padding = int64_t{0}, IntArrayRef dilation = 1, int64_t groups = 1);
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        IntArrayRef stride = 1, IntArrayRef padding = int64_t{0},
                        IntArrayRef output_padding = int64_t{0}, int64_t groups = 1,
                        IntArrayRef dilation = 1);
Tensor max_pool2d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride = {},
                  IntArrayRef padding = int64_t{0}, IntArrayRef dilation = 1, bool ceil_mode = false);
Tensor avg_pool2d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride = {},
                  IntArrayRef padding = int64_t{0}, bool ceil_mode = false, bool count_include_pad = true);
Tensor layer_norm(const Tensor& x, IntArrayRef shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

// As at::parallel_for: `body` is called with ranges that together are [begin, end).
void ParallelFor(int64_t begin, int64_t end, int64_t grain, void (*call)(void*, int64_t, int64_t),
                 void* body);
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
  ParallelFor(
      begin, end, grain,
      [](void* erased, int64_t first, int64_t last) { (*static_cast<const Body*>(erased))(first, last); },
      const_cast<Body*>(&body));
}
int get_num_threads();

// No gradients are recorded while it lives.
class NoGradGuard {
 public:
  NoGradGuard();
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool was_enabled_;
};

}  // namespace warpsmith_facade

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_FUNCTIONS_H_
