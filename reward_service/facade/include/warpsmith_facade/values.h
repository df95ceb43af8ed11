// Element types, devices, options and other small values of Torch's C++ API, by its names and numbers.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_VALUES_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "warpsmith_facade/half.h"

namespace warpsmith_facade {

template <class T>
using optional = std::optional<T>;
using std::nullopt;

enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15
};
constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = kByte;
constexpr ScalarType kChar = ScalarType::Char, kInt8 = kChar;
constexpr ScalarType kShort = ScalarType::Short, kInt16 = kShort;
constexpr ScalarType kInt = ScalarType::Int, kInt32 = kInt;
constexpr ScalarType kLong = ScalarType::Long, kInt64 = kLong;
constexpr ScalarType kHalf = ScalarType::Half, kFloat16 = kHalf;
constexpr ScalarType kFloat = ScalarType::Float, kFloat32 = kFloat;
constexpr ScalarType kDouble = ScalarType::Double, kFloat64 = kDouble;
constexpr ScalarType kBool = ScalarType::Bool;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16;

// The element type of a C++ type.
template <class T>
struct ScalarTypeOf;
#define WARPSMITH_FACADE_SCALAR_TYPE(type, name)          \
  template <>                                             \
  struct ScalarTypeOf<type> {                             \
    static constexpr ScalarType value = ScalarType::name; \
  };
WARPSMITH_FACADE_SCALAR_TYPE(uint8_t, Byte)
WARPSMITH_FACADE_SCALAR_TYPE(int8_t, Char)
WARPSMITH_FACADE_SCALAR_TYPE(int16_t, Short)
WARPSMITH_FACADE_SCALAR_TYPE(int, Int)
WARPSMITH_FACADE_SCALAR_TYPE(int64_t, Long)
WARPSMITH_FACADE_SCALAR_TYPE(Half, Half)
WARPSMITH_FACADE_SCALAR_TYPE(float, Float)
WARPSMITH_FACADE_SCALAR_TYPE(double, Double)
WARPSMITH_FACADE_SCALAR_TYPE(bool, Bool)
WARPSMITH_FACADE_SCALAR_TYPE(BFloat16, BFloat16)
#undef WARPSMITH_FACADE_SCALAR_TYPE

const char* toString(ScalarType type);
bool isFloatingType(ScalarType type);
size_t elementSize(ScalarType type);

// What Tensor::dtype() gives.
class TypeMeta {
 public:
  TypeMeta(ScalarType type) : type_(type) {}
  ScalarType toScalarType() const { return type_; }
  const char* name() const { return toString(type_); }
  size_t itemsize() const { return elementSize(type_); }

 private:
  ScalarType type_;
};
inline bool operator==(TypeMeta a, TypeMeta b) { return a.toScalarType() == b.toScalarType(); }
inline bool operator!=(TypeMeta a, TypeMeta b) { return !(a == b); }
inline ScalarType typeMetaToScalarType(TypeMeta type) { return type.toScalarType(); }

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

class Device {
 public:
  using Type = DeviceType;
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const char* name) : Device(std::string(name)) {}
  Device(const std::string& name);  // "cpu", "cuda", "cuda:1"
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  std::string str() const;

 private:
  DeviceType type_;
  DeviceIndex index_;
};
inline bool operator==(Device a, Device b) { return a.type() == b.type() && a.index() == b.index(); }
inline bool operator!=(Device a, Device b) { return !(a == b); }

enum class Layout : int8_t { Strided = 0 };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };

// What Tensor::type() gives.
class TypeProperties {
 public:
  TypeProperties(ScalarType type, bool is_cuda) : type_(type), is_cuda_(is_cuda) {}
  ScalarType scalarType() const { return type_; }
  bool is_cuda() const { return is_cuda_; }

 private:
  ScalarType type_;
  bool is_cuda_;
};

// A number that remembers whether it is integral, as operators take one.
class Scalar {
 public:
  enum class Kind { kBool, kInteger, kReal };
  Scalar(bool value) : kind_(Kind::kBool), integer_(value) {}
  Scalar(int value) : kind_(Kind::kInteger), integer_(value) {}
  Scalar(unsigned value) : kind_(Kind::kInteger), integer_(value) {}
  Scalar(long value) : kind_(Kind::kInteger), integer_(value) {}
  Scalar(long long value) : kind_(Kind::kInteger), integer_(value) {}
  Scalar(float value) : kind_(Kind::kReal), real_(value) {}
  Scalar(double value) : kind_(Kind::kReal), real_(value) {}
  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  double real() const { return real_; }
  template <class T>
  T to() const {
    return kind_ == Kind::kReal ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int toInt() const { return to<int>(); }
  int64_t toLong() const { return to<int64_t>(); }

 private:
  Kind kind_;
  union {
    int64_t integer_;
    double real_;
  };
};

// Values of somebody else's array.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // for calls alone, as Torch's own
#endif
  ArrayRef(const std::initializer_list<T>& values) : data_(values.begin()), size_(values.size()) {}
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic pop
#endif
  template <size_t n>
  ArrayRef(const T (&values)[n]) : data_(values), size_(n) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }
  ArrayRef slice(size_t first, size_t count) const { return {data_ + first, count}; }
  ArrayRef slice(size_t first) const { return {data_ + first, size_ - first}; }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}
using IntArrayRef = ArrayRef<int64_t>;

// Of factories. What is not said comes from the context.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type), has_dtype_(true) {}
  TensorOptions(TypeMeta type) : TensorOptions(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device), has_device_(true) {}
  TensorOptions(DeviceType type) : TensorOptions(Device(type)) {}
  TensorOptions(Layout) {}
  TensorOptions dtype(TypeMeta type) const {
    TensorOptions changed = *this;
    changed.dtype_ = type.toScalarType();
    changed.has_dtype_ = true;
    return changed;
  }
  TensorOptions dtype(ScalarType type) const { return dtype(TypeMeta(type)); }
  TensorOptions device(Device device) const {
    TensorOptions changed = *this;
    changed.device_ = device;
    changed.has_device_ = true;
    return changed;
  }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const { return device(Device(type, index)); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool wanted) const {
    TensorOptions changed = *this;
    changed.requires_grad_ = wanted;
    return changed;
  }
  TensorOptions pinned_memory(bool wanted) const {
    TensorOptions changed = *this;
    changed.pinned_memory_ = wanted;
    return changed;
  }
  TensorOptions memory_format(MemoryFormat format) const {
    TensorOptions changed = *this;
    changed.memory_format_ = format;
    changed.has_memory_format_ = true;
    return changed;
  }
  TypeMeta dtype() const { return dtype_; }
  Device device() const { return device_; }
  bool has_dtype() const { return has_dtype_; }
  bool has_device() const { return has_device_; }
  bool has_memory_format() const { return has_memory_format_; }
  MemoryFormat memory_format() const { return memory_format_; }
  bool requires_grad() const { return requires_grad_; }
  bool pinned_memory() const { return pinned_memory_; }

 private:
  ScalarType dtype_ = ScalarType::Float;
  Device device_ = Device(DeviceType::CPU);
  MemoryFormat memory_format_ = MemoryFormat::Contiguous;
  bool has_dtype_ = false;
  bool has_device_ = false;
  bool has_memory_format_ = false;
  bool requires_grad_ = false;
  bool pinned_memory_ = false;
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device value) { return TensorOptions(value); }
inline TensorOptions device(DeviceType type) { return TensorOptions(type); }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

}  // namespace warpsmith_facade

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_VALUES_H_
