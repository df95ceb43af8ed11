// Arrays of what a GPU stores, as floats and back, for kernels of the GPU made of the host.
#ifndef WARPSMITH_TESTS_SUPPORT_HOST_FLOATS_H_
#define WARPSMITH_TESTS_SUPPORT_HOST_FLOATS_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/model/stored_type_cuda.h"

namespace warpsmith {

inline float Load(const float& stored) { return stored; }
inline void Store(float value, float& to) { to = value; }

template <typename T>
float Load(const T& stored) {
  uint16_t bits = 0;
  std::memcpy(&bits, &stored, sizeof(bits));
  return kDtypeOf<T> == DeviceDtype::kFloat16 ? FloatOfFloat16(bits) : FloatOfBfloat16(bits);
}

template <typename T>
void Store(float value, T& to) {
  const uint16_t bits = kDtypeOf<T> == DeviceDtype::kFloat16 ? Float16Bits(value) : Bfloat16Bits(value);
  std::memcpy(static_cast<void*>(&to), &bits, sizeof(bits));
}

// Holds the values of `from`; get() is null where `from` is, so that optional operands stay optional.
template <typename T>
struct Floats {
  Floats(const T* from, int64_t size) : values(from == nullptr ? 0 : size), present(from != nullptr) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = Load(from[i]);
  }
  float* get() { return present ? values.data() : nullptr; }
  void WriteTo(T* to) const {
    for (size_t i = 0; i < values.size(); ++i) Store(values[i], to[i]);
  }

  std::vector<float> values;
  bool present;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HOST_FLOATS_H_
