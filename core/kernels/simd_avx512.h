// Vectors of 64 bytes on AVX-512; see simd_portable.h for the contract.
#ifndef WARPSMITH_CORE_KERNELS_SIMD_AVX512_H_
#define WARPSMITH_CORE_KERNELS_SIMD_AVX512_H_

#include <immintrin.h>
#include <stdint.h>

namespace warpsmith {
namespace {

inline constexpr int kTileVectors = 4;

template <typename T>
struct Vec;

template <>
struct Vec<float> {
  static constexpr int kLanes = 16;
  __m512 v;

  static __mmask16 Mask(int count) { return static_cast<__mmask16>((1u << count) - 1u); }
  static Vec Zero() { return {_mm512_setzero_ps()}; }
  static Vec Broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static Vec Load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Vec LoadPartial(const float* from, int count, float fill = 0) {
    return {_mm512_mask_loadu_ps(_mm512_set1_ps(fill), Mask(count), from)};
  }
  void Store(float* to) const { _mm512_storeu_ps(to, v); }
  void StorePartial(float* to, int count) const { _mm512_mask_storeu_ps(to, Mask(count), v); }

  friend Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend Vec Max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  friend Vec Min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  friend Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Vec Sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
  friend Vec Round(Vec a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  friend Vec Exp2Whole(Vec n) { return {_mm512_scalef_ps(_mm512_set1_ps(1), n.v)}; }
  friend Vec KeepWhereAtLeast(Vec x, Vec bound, Vec a) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, bound.v, _CMP_GE_OQ), a.v)};
  }
  friend float ReduceAdd(Vec a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  friend float ReduceMax(Vec a) { return _mm512_reduce_max_ps(a.v); }
};

template <>
struct Vec<double> {
  static constexpr int kLanes = 8;
  __m512d v;

  static __mmask8 Mask(int count) { return static_cast<__mmask8>((1u << count) - 1u); }
  static Vec Zero() { return {_mm512_setzero_pd()}; }
  static Vec Broadcast(double x) { return {_mm512_set1_pd(x)}; }
  static Vec Load(const double* from) { return {_mm512_loadu_pd(from)}; }
  static Vec LoadPartial(const double* from, int count, double fill = 0) {
    return {_mm512_mask_loadu_pd(_mm512_set1_pd(fill), Mask(count), from)};
  }
  void Store(double* to) const { _mm512_storeu_pd(to, v); }
  void StorePartial(double* to, int count) const { _mm512_mask_storeu_pd(to, Mask(count), v); }

  friend Vec operator+(Vec a, Vec b) { return {_mm512_add_pd(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_pd(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_pd(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm512_div_pd(a.v, b.v)}; }
  friend Vec Max(Vec a, Vec b) { return {_mm512_max_pd(a.v, b.v)}; }
  friend Vec Min(Vec a, Vec b) { return {_mm512_min_pd(a.v, b.v)}; }
  friend Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  friend Vec Sqrt(Vec a) { return {_mm512_sqrt_pd(a.v)}; }
  friend Vec Round(Vec a) {
    return {_mm512_roundscale_pd(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  friend Vec Exp2Whole(Vec n) { return {_mm512_scalef_pd(_mm512_set1_pd(1), n.v)}; }
  friend Vec KeepWhereAtLeast(Vec x, Vec bound, Vec a) {
    return {_mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x.v, bound.v, _CMP_GE_OQ), a.v)};
  }
  friend double ReduceAdd(Vec a) {
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(a.v), _mm512_extractf64x4_pd(a.v, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  friend double ReduceMax(Vec a) { return _mm512_reduce_max_pd(a.v); }
};

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SIMD_AVX512_H_
