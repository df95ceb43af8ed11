// Vectors of 64 bytes on AVX2 with FMA, two registers each; see simd_portable.h for the contract.
#ifndef WARPSMITH_CORE_KERNELS_SIMD_AVX2_H_
#define WARPSMITH_CORE_KERNELS_SIMD_AVX2_H_

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace warpsmith {
namespace {

inline constexpr int kTileVectors = 1;

template <typename T>
struct Vec;

template <>
struct Vec<float> {
  static constexpr int kLanes = 16;
  __m256 a, b;

  static Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec Broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec Load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static Vec LoadPartial(const float* from, int count, float fill = 0) {
    float lanes[kLanes];
    Broadcast(fill).Store(lanes);
    memcpy(lanes, from, count * sizeof(float));
    return Load(lanes);
  }
  void Store(float* to) const {
    _mm256_storeu_ps(to, a);
    _mm256_storeu_ps(to + 8, b);
  }
  void StorePartial(float* to, int count) const {
    float lanes[kLanes];
    Store(lanes);
    memcpy(to, lanes, count * sizeof(float));
  }

  friend Vec operator+(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  friend Vec operator-(Vec x, Vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  friend Vec operator*(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  friend Vec operator/(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  friend Vec Max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  friend Vec Min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  friend Vec Fma(Vec x, Vec y, Vec z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  friend Vec Sqrt(Vec x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
  static __m256 RoundHalf(__m256 x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  friend Vec Round(Vec x) { return {RoundHalf(x.a), RoundHalf(x.b)}; }
  static __m256 Exp2Half(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  friend Vec Exp2Whole(Vec n) { return {Exp2Half(n.a), Exp2Half(n.b)}; }
  friend Vec KeepWhereAtLeast(Vec x, Vec bound, Vec y) {
    return {_mm256_and_ps(_mm256_cmp_ps(x.a, bound.a, _CMP_GE_OQ), y.a),
            _mm256_and_ps(_mm256_cmp_ps(x.b, bound.b, _CMP_GE_OQ), y.b)};
  }
  friend float ReduceAdd(Vec x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  friend float ReduceMax(Vec x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
};

template <>
struct Vec<double> {
  static constexpr int kLanes = 8;
  __m256d a, b;

  static Vec Zero() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  static Vec Broadcast(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
  static Vec Load(const double* from) { return {_mm256_loadu_pd(from), _mm256_loadu_pd(from + 4)}; }
  static Vec LoadPartial(const double* from, int count, double fill = 0) {
    double lanes[kLanes];
    Broadcast(fill).Store(lanes);
    memcpy(lanes, from, count * sizeof(double));
    return Load(lanes);
  }
  void Store(double* to) const {
    _mm256_storeu_pd(to, a);
    _mm256_storeu_pd(to + 4, b);
  }
  void StorePartial(double* to, int count) const {
    double lanes[kLanes];
    Store(lanes);
    memcpy(to, lanes, count * sizeof(double));
  }

  friend Vec operator+(Vec x, Vec y) { return {_mm256_add_pd(x.a, y.a), _mm256_add_pd(x.b, y.b)}; }
  friend Vec operator-(Vec x, Vec y) { return {_mm256_sub_pd(x.a, y.a), _mm256_sub_pd(x.b, y.b)}; }
  friend Vec operator*(Vec x, Vec y) { return {_mm256_mul_pd(x.a, y.a), _mm256_mul_pd(x.b, y.b)}; }
  friend Vec operator/(Vec x, Vec y) { return {_mm256_div_pd(x.a, y.a), _mm256_div_pd(x.b, y.b)}; }
  friend Vec Max(Vec x, Vec y) { return {_mm256_max_pd(x.a, y.a), _mm256_max_pd(x.b, y.b)}; }
  friend Vec Min(Vec x, Vec y) { return {_mm256_min_pd(x.a, y.a), _mm256_min_pd(x.b, y.b)}; }
  friend Vec Fma(Vec x, Vec y, Vec z) {
    return {_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b)};
  }
  friend Vec Sqrt(Vec x) { return {_mm256_sqrt_pd(x.a), _mm256_sqrt_pd(x.b)}; }
  static __m256d RoundHalf(__m256d x) {
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  friend Vec Round(Vec x) { return {RoundHalf(x.a), RoundHalf(x.b)}; }
  static __m256d Exp2Half(__m256d n) {
    const __m256i whole = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n));
    return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(whole, _mm256_set1_epi64x(1023)), 52));
  }
  friend Vec Exp2Whole(Vec n) { return {Exp2Half(n.a), Exp2Half(n.b)}; }
  friend Vec KeepWhereAtLeast(Vec x, Vec bound, Vec y) {
    return {_mm256_and_pd(_mm256_cmp_pd(x.a, bound.a, _CMP_GE_OQ), y.a),
            _mm256_and_pd(_mm256_cmp_pd(x.b, bound.b, _CMP_GE_OQ), y.b)};
  }
  friend double ReduceAdd(Vec x) {
    const __m256d four = _mm256_add_pd(x.a, x.b);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  friend double ReduceMax(Vec x) {
    const __m256d four = _mm256_max_pd(x.a, x.b);
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SIMD_AVX2_H_
