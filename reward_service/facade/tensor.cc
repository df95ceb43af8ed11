#include "warpsmith_facade/tensor.h"

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <new>

#include "reward_service/facade/handle.h"

namespace warpsmith_facade {

Tensor::Tensor() { new (handle_) at::Tensor(); }
Tensor::Tensor(const Tensor& other) { new (handle_) at::Tensor(Real(other)); }
Tensor::Tensor(Tensor&& other) noexcept { new (handle_) at::Tensor(std::move(Real(other))); }
Tensor::~Tensor() { Real(*this).~Tensor(); }
Tensor& Tensor::operator=(const Tensor& other) & {
  Real(*this) = Real(other);
  return *this;
}
Tensor& Tensor::operator=(Tensor&& other) & noexcept {
  Real(*this) = std::move(Real(other));
  return *this;
}
Tensor& Tensor::operator=(const Tensor& other) && {
  Real(*this).copy_(Real(other));
  return *this;
}
Tensor& Tensor::operator=(const Scalar& value) && {
  Real(*this).fill_(Real(value));
  return *this;
}

bool Tensor::defined() const { return Real(*this).defined(); }
void Tensor::reset() { Real(*this).reset(); }
bool Tensor::is_same(const Tensor& other) const { return Real(*this).is_same(Real(other)); }
int64_t Tensor::dim() const { return Real(*this).dim(); }
int64_t Tensor::numel() const { return Real(*this).numel(); }
int64_t Tensor::size(int64_t i) const { return Real(*this).size(i); }
int64_t Tensor::stride(int64_t i) const { return Real(*this).stride(i); }
IntArrayRef Tensor::sizes() const { return Wrap(Real(*this).sizes()); }
IntArrayRef Tensor::strides() const { return Wrap(Real(*this).strides()); }
int64_t Tensor::storage_offset() const { return Real(*this).storage_offset(); }
int64_t Tensor::element_size() const { return static_cast<int64_t>(Real(*this).element_size()); }
ScalarType Tensor::scalar_type() const { return static_cast<ScalarType>(Real(*this).scalar_type()); }
Device Tensor::device() const { return Wrap(Real(*this).device()); }
bool Tensor::is_contiguous(MemoryFormat format) const { return Real(*this).is_contiguous(Real(format)); }
bool Tensor::requires_grad() const { return Real(*this).requires_grad(); }
void* Tensor::data_ptr() const { return Real(*this).data_ptr(); }
TensorOptions Tensor::options() const { return TensorOptions(scalar_type()).device(device()); }

void* Tensor::TypedData(ScalarType type) const {
  const ScalarType own = scalar_type();
  TORCH_CHECK(own == type, "expected scalar type ", toString(type), " but found ", toString(own));
  return Real(*this).data_ptr();
}

void Tensor::CheckDim(size_t wanted) const {
  TORCH_CHECK(dim() == static_cast<int64_t>(wanted), "TensorAccessor expected ", wanted,
              " dims but tensor has ", dim());
}

Scalar Tensor::item() const {
  const at::Scalar value = Real(*this).item();
  if (value.isBoolean()) return Scalar(value.toBool());
  if (value.isIntegral(/*includeBool=*/false)) return Scalar(value.toLong());
  return Scalar(value.toDouble());
}

Tensor Tensor::contiguous(MemoryFormat format) const { return Wrap(Real(*this).contiguous(Real(format))); }
Tensor Tensor::clone() const { return Wrap(Real(*this).clone()); }
Tensor Tensor::clone(MemoryFormat format) const { return Wrap(Real(*this).clone(Real(format))); }
Tensor Tensor::detach() const { return Wrap(Real(*this).detach()); }
Tensor Tensor::to(ScalarType type, bool non_blocking, bool copy) const {
  return Wrap(Real(*this).to(Real(type), non_blocking, copy));
}
Tensor Tensor::to(Device device, bool non_blocking, bool copy) const {
  return Wrap(Real(*this).to(at::TensorOptions(Real(device)), non_blocking, copy));
}
Tensor Tensor::to(Device device, ScalarType type, bool non_blocking, bool copy) const {
  return Wrap(Real(*this).to(Real(device), Real(type), non_blocking, copy));
}
Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy) const {
  return Wrap(Real(*this).to(Real(options), non_blocking, copy));
}
Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) {
  Real(*this).copy_(Real(source), non_blocking);
  return *this;
}
Tensor& Tensor::fill_(const Scalar& value) {
  Real(*this).fill_(Real(value));
  return *this;
}
Tensor& Tensor::zero_() {
  Real(*this).zero_();
  return *this;
}
const Tensor& Tensor::resize_(IntArrayRef size) const {
  Real(*this).resize_(Real(size));
  return *this;
}

Tensor Tensor::view(IntArrayRef size) const { return Wrap(Real(*this).view(Real(size))); }
Tensor Tensor::reshape(IntArrayRef size) const { return Wrap(Real(*this).reshape(Real(size))); }
Tensor Tensor::flatten(int64_t first, int64_t last) const { return Wrap(Real(*this).flatten(first, last)); }
Tensor Tensor::permute(IntArrayRef dims) const { return Wrap(Real(*this).permute(Real(dims))); }
Tensor Tensor::transpose(int64_t a, int64_t b) const { return Wrap(Real(*this).transpose(a, b)); }
Tensor Tensor::unsqueeze(int64_t dim) const { return Wrap(Real(*this).unsqueeze(dim)); }
Tensor Tensor::squeeze() const { return Wrap(Real(*this).squeeze()); }
Tensor Tensor::squeeze(int64_t dim) const { return Wrap(Real(*this).squeeze(dim)); }
Tensor Tensor::expand(IntArrayRef size) const { return Wrap(Real(*this).expand(Real(size))); }
Tensor Tensor::repeat(IntArrayRef times) const { return Wrap(Real(*this).repeat(Real(times))); }
Tensor Tensor::slice(int64_t dim, optional<int64_t> begin, optional<int64_t> end, int64_t step) const {
  return Wrap(Real(*this).slice(dim, begin, end, step));
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return Wrap(Real(*this).select(dim, index)); }
Tensor Tensor::narrow(int64_t dim, int64_t begin, int64_t length) const {
  return Wrap(Real(*this).narrow(dim, begin, length));
}
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return Wrap(Real(*this).index_select(dim, Real(index)));
}
std::vector<Tensor> Tensor::chunk(int64_t count, int64_t dim) const {
  return Wrap(Real(*this).chunk(count, dim));
}
std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const {
  return Wrap(Real(*this).split(size, dim));
}
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return Wrap(Real(*this).unbind(dim)); }

#define UNARY(name) \
  Tensor Tensor::name() const { return Wrap(Real(*this).name()); }
#define UNARY_IN_PLACE(name)  \
  Tensor& Tensor::name##_() { \
    Real(*this).name##_();    \
    return *this;             \
  }
#define BINARY(name) \
  Tensor Tensor::name(const Tensor& other) const { return Wrap(Real(*this).name(Real(other))); }
#define COMPARE(name) \
  BINARY(name)        \
  Tensor Tensor::name(const Scalar& other) const { return Wrap(Real(*this).name(Real(other))); }
#include "warpsmith_facade/operators.inc"
#undef UNARY
#undef UNARY_IN_PLACE
#undef BINARY

#define ARITHMETIC(name) COMPARE(name)
#define BINARY(name) \
  Tensor Tensor::name(const Tensor& other) const { return Wrap(Real(*this).name(Real(other))); }
ARITHMETIC(mul)
ARITHMETIC(div)
ARITHMETIC(pow)
#undef ARITHMETIC
#undef BINARY
#undef COMPARE

#define WITH_ALPHA(name, Other)                                        \
  Tensor Tensor::name(const Other& other, const Scalar& alpha) const { \
    return Wrap(Real(*this).name(Real(other), Real(alpha)));           \
  }                                                                    \
  Tensor& Tensor::name##_(const Other& other, const Scalar& alpha) {   \
    Real(*this).name##_(Real(other), Real(alpha));                     \
    return *this;                                                      \
  }
WITH_ALPHA(add, Tensor)
WITH_ALPHA(add, Scalar)
WITH_ALPHA(sub, Tensor)
WITH_ALPHA(sub, Scalar)
#undef WITH_ALPHA

#define IN_PLACE(name, Other)                \
  Tensor& Tensor::name(const Other& other) { \
    Real(*this).name(Real(other));           \
    return *this;                            \
  }
IN_PLACE(mul_, Tensor)
IN_PLACE(mul_, Scalar)
IN_PLACE(div_, Tensor)
IN_PLACE(div_, Scalar)
#undef IN_PLACE

Tensor& Tensor::clamp_(const optional<Scalar>& low, const optional<Scalar>& high) {
  Real(*this).clamp_(Real(low), Real(high));
  return *this;
}
Tensor Tensor::clamp(const optional<Scalar>& low, const optional<Scalar>& high) const {
  return Wrap(Real(*this).clamp(Real(low), Real(high)));
}
Tensor Tensor::clamp_min(const Scalar& low) const { return Wrap(Real(*this).clamp_min(Real(low))); }
Tensor Tensor::clamp_max(const Scalar& high) const { return Wrap(Real(*this).clamp_max(Real(high))); }
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const {
  return Wrap(Real(*this).masked_fill(Real(mask), Real(value)));
}
Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) {
  Real(*this).masked_fill_(Real(mask), Real(value));
  return *this;
}
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  return Wrap(Real(*this).addmm(Real(a), Real(b), Real(beta), Real(alpha)));
}

Tensor Tensor::sum() const { return Wrap(Real(*this).sum()); }
Tensor Tensor::sum(IntArrayRef dims, bool keepdim) const {
  return Wrap(Real(*this).sum(Real(dims), keepdim));
}
Tensor Tensor::mean() const { return Wrap(Real(*this).mean()); }
Tensor Tensor::mean(IntArrayRef dims, bool keepdim) const {
  return Wrap(Real(*this).mean(Real(dims), keepdim));
}
Tensor Tensor::var(int64_t dim, bool unbiased, bool keepdim) const {
  return Wrap(Real(*this).var(at::IntArrayRef(dim), unbiased, keepdim));
}
Tensor Tensor::norm() const { return Wrap(Real(*this).norm()); }
Tensor Tensor::amax(IntArrayRef dims, bool keepdim) const {
  return Wrap(Real(*this).amax(Real(dims), keepdim));
}
Tensor Tensor::amin(IntArrayRef dims, bool keepdim) const {
  return Wrap(Real(*this).amin(Real(dims), keepdim));
}
Tensor Tensor::max() const { return Wrap(Real(*this).max()); }
Tensor Tensor::min() const { return Wrap(Real(*this).min()); }
std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const {
  auto [values, indices] = Real(*this).max(dim, keepdim);
  return {Wrap(std::move(values)), Wrap(std::move(indices))};
}
std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const {
  auto [values, indices] = Real(*this).min(dim, keepdim);
  return {Wrap(std::move(values)), Wrap(std::move(indices))};
}
Tensor Tensor::argmax(optional<int64_t> dim, bool keepdim) const {
  return Wrap(Real(*this).argmax(dim, keepdim));
}
Tensor Tensor::argmin(optional<int64_t> dim, bool keepdim) const {
  return Wrap(Real(*this).argmin(dim, keepdim));
}
Tensor Tensor::cumsum(int64_t dim) const { return Wrap(Real(*this).cumsum(dim)); }
Tensor Tensor::cumprod(int64_t dim) const { return Wrap(Real(*this).cumprod(dim)); }
Tensor Tensor::softmax(int64_t dim) const { return Wrap(Real(*this).softmax(dim)); }
Tensor Tensor::log_softmax(int64_t dim) const { return Wrap(Real(*this).log_softmax(dim)); }
Tensor Tensor::logsumexp(IntArrayRef dims, bool keepdim) const {
  return Wrap(Real(*this).logsumexp(Real(dims), keepdim));
}

Tensor operator-(const Scalar& a, const Tensor& b) { return Wrap(Real(a) - Real(b)); }
Tensor operator/(const Scalar& a, const Tensor& b) { return Wrap(Real(a) / Real(b)); }

}  // namespace warpsmith_facade
