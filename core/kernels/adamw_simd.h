// The AdamW update of adamw.h for a range. Included by variant.h only.
#ifndef WARPSMITH_CORE_KERNELS_ADAMW_SIMD_H_
#define WARPSMITH_CORE_KERNELS_ADAMW_SIMD_H_

namespace warpsmith {
namespace {

inline void UpdateAdamW(const AdamWRange& range) {
  using V = Vec<float>;
  const V one = V::Broadcast(1.0f);
  const V beta1 = V::Broadcast(range.beta1), beta2 = V::Broadcast(range.beta2);
  ForVectors<float>(range.size, [&](int64_t i, int count) {
    const V g = LoadUpTo(range.gradient + i, count) * V::Broadcast(range.gradient_scale);
    const V m = Fma(beta1, LoadUpTo(range.first_moment + i, count), (one - beta1) * g);
    const V v = Fma(beta2, LoadUpTo(range.second_moment + i, count), (one - beta2) * (g * g));
    const V denominator =
        Fma(Sqrt(v), V::Broadcast(range.inverse_sqrt_correction2), V::Broadcast(range.epsilon));
    const V p = LoadUpTo(range.parameter + i, count) * V::Broadcast(range.decay_factor);
    StoreUpTo(m, range.first_moment + i, count);
    StoreUpTo(v, range.second_moment + i, count);
    StoreUpTo(p - V::Broadcast(range.step_size) * (m / denominator), range.parameter + i, count);
  });
}

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ADAMW_SIMD_H_
