// torch::Tensor as answers use it: declared here, defined once in a library over the real one.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_TENSOR_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_TENSOR_H_

#include <array>
#include <tuple>

#include "warpsmith_facade/accessor.h"
#include "warpsmith_facade/check.h"
#include "warpsmith_facade/values.h"

namespace warpsmith_facade {

class Tensor;
using TensorList = ArrayRef<Tensor>;

// A handle, as the real one; copies share the elements.
class Tensor {
 public:
  Tensor();
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  ~Tensor();
  Tensor& operator=(const Tensor& other) &;
  Tensor& operator=(Tensor&& other) & noexcept;
  // Assignment to a temporary, `x[0] = y`, writes into its elements.
  Tensor& operator=(const Tensor& other) &&;
  Tensor& operator=(const Scalar& value) &&;

  bool defined() const;
  void reset();
  bool is_same(const Tensor& other) const;
  explicit operator bool() const { return defined(); }

  int64_t dim() const;
  int64_t ndimension() const { return dim(); }
  int64_t numel() const;
  int64_t size(int64_t i) const;
  int64_t stride(int64_t i) const;
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  int64_t storage_offset() const;
  int64_t element_size() const;
  int64_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel() * element_size()); }
  ScalarType scalar_type() const;
  TypeMeta dtype() const { return scalar_type(); }
  TypeProperties type() const { return {scalar_type(), is_cuda()}; }
  Device device() const;
  DeviceIndex get_device() const { return device().index(); }
  Layout layout() const { return kStrided; }
  TensorOptions options() const;
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool requires_grad() const;

  void* data_ptr() const;
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(TypedData(ScalarTypeOf<std::remove_const_t<T>>::value));
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<std::remove_const_t<T>>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }

  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    CheckDim(N);
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const& {
    CheckDim(N);
    WARPSMITH_FACADE_CHECK(numel() <= INT32_MAX, "numel needs to be smaller than int32_t max");
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const& {
    CheckDim(N);
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }

  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor clone() const;
  Tensor clone(MemoryFormat format) const;
  Tensor detach() const;
  Tensor to(ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor to(TypeMeta type) const { return to(type.toScalarType()); }
  Tensor to(Device device, bool non_blocking = false, bool copy = false) const;
  Tensor to(DeviceType type) const { return to(Device(type)); }
  Tensor to(Device device, ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false) const;
  Tensor cpu() const { return to(Device(kCPU)); }
  Tensor cuda() const { return to(Device(kCUDA)); }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor& copy_(const Tensor& source, bool non_blocking = false);
  Tensor& fill_(const Scalar& value);
  Tensor& zero_();
  const Tensor& resize_(IntArrayRef size) const;

  Tensor view(IntArrayRef size) const;
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape(IntArrayRef size) const;
  Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const;
  Tensor permute(IntArrayRef dims) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor expand(IntArrayRef size) const;
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor repeat(IntArrayRef times) const;
  Tensor slice(int64_t dim = 0, optional<int64_t> begin = nullopt, optional<int64_t> end = nullopt,
               int64_t step = 1) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor narrow(int64_t dim, int64_t begin, int64_t length) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor index_select(int64_t dim, const Tensor& index) const;
  std::vector<Tensor> chunk(int64_t count, int64_t dim = 0) const;
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;

#define UNARY(name) Tensor name() const;
#define UNARY_IN_PLACE(name) Tensor& name##_();
#define BINARY(name) Tensor name(const Tensor& other) const;
#define COMPARE(name)                     \
  Tensor name(const Tensor& other) const; \
  Tensor name(const Scalar& other) const;
#include "warpsmith_facade/operators.inc"
#undef UNARY
#undef UNARY_IN_PLACE
#undef BINARY
#undef COMPARE

  Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor add(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor sub(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor sub(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor mul(const Tensor& other) const;
  Tensor mul(const Scalar& other) const;
  Tensor div(const Tensor& other) const;
  Tensor div(const Scalar& other) const;
  Tensor pow(const Tensor& exponent) const;
  Tensor pow(const Scalar& exponent) const;
  Tensor& add_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& add_(const Scalar& other, const Scalar& alpha = 1);
  Tensor& sub_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& sub_(const Scalar& other, const Scalar& alpha = 1);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(const Scalar& other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(const Scalar& other);
  Tensor& clamp_(const optional<Scalar>& low, const optional<Scalar>& high = nullopt);
  Tensor clamp(const optional<Scalar>& low, const optional<Scalar>& high = nullopt) const;
  Tensor clamp_min(const Scalar& low) const;
  Tensor clamp_max(const Scalar& high) const;
  Tensor masked_fill(const Tensor& mask, const Scalar& value) const;
  Tensor& masked_fill_(const Tensor& mask, const Scalar& value);
  Tensor addmm(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;

  Tensor sum() const;
  Tensor sum(IntArrayRef dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(IntArrayRef dims, bool keepdim = false) const;
  Tensor var(int64_t dim, bool unbiased = true, bool keepdim = false) const;
  Tensor norm() const;
  Tensor amax(IntArrayRef dims = {}, bool keepdim = false) const;
  Tensor amin(IntArrayRef dims = {}, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;
  std::tuple<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const;
  Tensor argmax(optional<int64_t> dim = nullopt, bool keepdim = false) const;
  Tensor argmin(optional<int64_t> dim = nullopt, bool keepdim = false) const;
  Tensor cumsum(int64_t dim) const;
  Tensor cumprod(int64_t dim) const;
  Tensor softmax(int64_t dim) const;
  Tensor log_softmax(int64_t dim) const;
  Tensor logsumexp(IntArrayRef dims, bool keepdim = false) const;

  Tensor operator-() const { return neg(); }
  Tensor& operator+=(const Tensor& other) { return add_(other); }
  Tensor& operator+=(const Scalar& other) { return add_(other); }
  Tensor& operator-=(const Tensor& other) { return sub_(other); }
  Tensor& operator-=(const Scalar& other) { return sub_(other); }
  Tensor& operator*=(const Tensor& other) { return mul_(other); }
  Tensor& operator*=(const Scalar& other) { return mul_(other); }
  Tensor& operator/=(const Tensor& other) { return div_(other); }
  Tensor& operator/=(const Scalar& other) { return div_(other); }

 private:
  friend struct Handle;  // the library's way in
  // The elements; throws when they are of another type.
  void* TypedData(ScalarType type) const;
  void CheckDim(size_t wanted) const;

  // Holds the real handle, which is one pointer; library code alone looks inside.
  alignas(void*) unsigned char handle_[sizeof(void*)];
};

#define WARPSMITH_FACADE_OPERATOR(op, name)                                         \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.name(b); }
WARPSMITH_FACADE_OPERATOR(+, add)
WARPSMITH_FACADE_OPERATOR(-, sub)
WARPSMITH_FACADE_OPERATOR(*, mul)
WARPSMITH_FACADE_OPERATOR(/, div)
WARPSMITH_FACADE_OPERATOR(==, eq)
WARPSMITH_FACADE_OPERATOR(!=, ne)
WARPSMITH_FACADE_OPERATOR(<, lt)
WARPSMITH_FACADE_OPERATOR(<=, le)
WARPSMITH_FACADE_OPERATOR(>, gt)
WARPSMITH_FACADE_OPERATOR(>=, ge)
#undef WARPSMITH_FACADE_OPERATOR
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
Tensor operator-(const Scalar& a, const Tensor& b);
Tensor operator/(const Scalar& a, const Tensor& b);

}  // namespace warpsmith_facade

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_TENSOR_H_
