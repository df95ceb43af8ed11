// Multi-dimensional views of elements, for host and device code.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_ACCESSOR_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_ACCESSOR_H_

#include <cstddef>
#include <cstdint>

#include "warpsmith_facade/half.h"

namespace warpsmith_facade {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
#ifdef __CUDACC__  // as the real one
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
#endif

// Borrows sizes and strides. x[i] is an element where N is 1, else an accessor of one dimension less.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  WARPSMITH_FACADE_BOTH TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  WARPSMITH_FACADE_BOTH Index size(int64_t i) const { return sizes_[i]; }
  WARPSMITH_FACADE_BOTH Index stride(int64_t i) const { return strides_[i]; }
  WARPSMITH_FACADE_BOTH PtrType data() const { return data_; }
  WARPSMITH_FACADE_BOTH decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return (data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
  }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

// Owns sizes and strides, so that a kernel can take it by value.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class PackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  PackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  WARPSMITH_FACADE_BOTH Index size(int i) const { return sizes_[i]; }
  WARPSMITH_FACADE_BOTH Index stride(int i) const { return strides_[i]; }
  WARPSMITH_FACADE_BOTH PtrType data() const { return data_; }
  WARPSMITH_FACADE_BOTH decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(data_, sizes_, strides_)[i];
  }

 private:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedTensorAccessor<T, N, Traits, int64_t>;

}  // namespace warpsmith_facade

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_ACCESSOR_H_
