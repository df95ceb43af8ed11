// Vectors of 64 bytes in plain C++: slow, for machines with neither AVX-512 nor AVX2, and for checking the
// other two.
//
// The three simd_*.h define the same operations with the same result to the bit: every operation is
// IEEE-exact, fused multiply-add is always fused, and horizontal reductions add halves (lane i with lane i +
// n/2, and so on).
#ifndef WARPSMITH_CORE_KERNELS_SIMD_PORTABLE_H_
#define WARPSMITH_CORE_KERNELS_SIMD_PORTABLE_H_

#include <stdint.h>
#include <string.h>

namespace warpsmith {
namespace {

inline constexpr int kTileVectors = 1;  // vectors across a tile of a product

inline float FusedMultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double FusedMultiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float PowerOfTwo(float n) {
  const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}
inline double PowerOfTwo(double n) {
  const uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52;
  double result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

template <typename T>
struct Vec {
  static constexpr int kLanes = 64 / sizeof(T);
  T lane[kLanes];

  static Vec Zero() { return Broadcast(T(0)); }
  static Vec Broadcast(T x) {
    Vec r;
    for (T& lane : r.lane) lane = x;
    return r;
  }
  static Vec Load(const T* from) {
    Vec r;
    memcpy(r.lane, from, sizeof(r.lane));
    return r;
  }
  // The first `count` lanes; the rest is `fill`.
  static Vec LoadPartial(const T* from, int count, T fill = T(0)) {
    Vec r = Broadcast(fill);
    memcpy(r.lane, from, count * sizeof(T));
    return r;
  }
  void Store(T* to) const { memcpy(to, lane, sizeof(lane)); }
  void StorePartial(T* to, int count) const { memcpy(to, lane, count * sizeof(T)); }

  // operation(a[i], b[i]) for every lane.
  template <typename Operation>
  static Vec Map(Vec a, Vec b, Operation operation) {
    for (int i = 0; i < kLanes; ++i) a.lane[i] = operation(a.lane[i], b.lane[i]);
    return a;
  }
  friend Vec operator+(Vec a, Vec b) {
    return Map(a, b, [](T x, T y) { return x + y; });
  }
  friend Vec operator-(Vec a, Vec b) {
    return Map(a, b, [](T x, T y) { return x - y; });
  }
  friend Vec operator*(Vec a, Vec b) {
    return Map(a, b, [](T x, T y) { return x * y; });
  }
  friend Vec operator/(Vec a, Vec b) {
    return Map(a, b, [](T x, T y) { return x / y; });
  }
  friend Vec Max(Vec a, Vec b) {
    return Map(a, b, [](T x, T y) { return x > y ? x : y; });
  }
  friend Vec Min(Vec a, Vec b) {
    return Map(a, b, [](T x, T y) { return x < y ? x : y; });
  }
  // a * b + c, rounded once.
  friend Vec Fma(Vec a, Vec b, Vec c) {
    for (int i = 0; i < kLanes; ++i) a.lane[i] = FusedMultiplyAdd(a.lane[i], b.lane[i], c.lane[i]);
    return a;
  }
  friend Vec Sqrt(Vec a) {
    return Map(a, a, [](T x, T) { return static_cast<T>(__builtin_sqrt(x)); });
  }
  friend Vec Round(Vec a) {
    return Map(a, a, [](T x, T) { return static_cast<T>(__builtin_nearbyint(x)); });
  }
  // 2^n for whole n within the exponents of normal numbers.
  friend Vec Exp2Whole(Vec n) {
    return Map(n, n, [](T x, T) { return PowerOfTwo(x); });
  }
  // a where x >= bound, else 0.
  friend Vec KeepWhereAtLeast(Vec x, Vec bound, Vec a) {
    for (int i = 0; i < kLanes; ++i) a.lane[i] = x.lane[i] >= bound.lane[i] ? a.lane[i] : T(0);
    return a;
  }
  friend T ReduceAdd(Vec a) {
    for (int n = kLanes / 2; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) a.lane[i] = a.lane[i] + a.lane[i + n];
    }
    return a.lane[0];
  }
  friend T ReduceMax(Vec a) {
    for (int i = 1; i < kLanes; ++i) a.lane[0] = a.lane[i] > a.lane[0] ? a.lane[i] : a.lane[0];
    return a.lane[0];
  }
};

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SIMD_PORTABLE_H_
