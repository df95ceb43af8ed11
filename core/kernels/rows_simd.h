// The row-wise operations of kernel_set.h. Included by variant.h only.
#ifndef WARPSMITH_CORE_KERNELS_ROWS_SIMD_H_
#define WARPSMITH_CORE_KERNELS_ROWS_SIMD_H_

namespace warpsmith {
namespace {

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln(2) / 2, exp(r) by its Taylor series to full
// precision. 0 below `kLowest`, where results would be denormal; constant above `kHighest`.
template <typename T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr int kDegree = 7;
  static constexpr float kLowest = -87.0f, kHighest = 88.0f;
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
};
template <>
struct ExpConstants<double> {
  static constexpr int kDegree = 13;
  static constexpr double kLowest = -708.0, kHighest = 709.0;
  static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.42860682030941723212e-6;
};

template <typename T>
inline Vec<T> Exp(Vec<T> x) {
  using V = Vec<T>;
  using C = ExpConstants<T>;
  constexpr double kInverseFactorial[] = {1.0,
                                          1.0,
                                          1.0 / 2,
                                          1.0 / 6,
                                          1.0 / 24,
                                          1.0 / 120,
                                          1.0 / 720,
                                          1.0 / 5040,
                                          1.0 / 40320,
                                          1.0 / 362880,
                                          1.0 / 3628800,
                                          1.0 / 39916800,
                                          1.0 / 479001600,
                                          1.0 / 6227020800};
  const V bounded = Min(Max(x, V::Broadcast(C::kLowest)), V::Broadcast(C::kHighest));
  const V n = Round(bounded * V::Broadcast(T(1.4426950408889634)));
  const V r = Fma(n, V::Broadcast(-C::kLn2Low), Fma(n, V::Broadcast(-C::kLn2High), bounded));
  V sum = V::Broadcast(T(kInverseFactorial[C::kDegree]));
  for (int i = C::kDegree - 1; i >= 0; --i) sum = Fma(sum, r, V::Broadcast(T(kInverseFactorial[i])));
  return KeepWhereAtLeast(x, V::Broadcast(C::kLowest), sum * Exp2Whole(n));
}

inline float SquareRoot(float x) { return __builtin_sqrtf(x); }
inline double SquareRoot(double x) { return __builtin_sqrt(x); }
inline float Logarithm(float x) { return __builtin_logf(x); }
inline double Logarithm(double x) { return __builtin_log(x); }

// Calls body(offset, count) for every vector of a row; count is short of the lanes at the end only.
template <typename T, typename Body>
inline void ForVectors(int64_t size, Body body) {
  constexpr int kLanes = Vec<T>::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) body(i, kLanes);
  if (i < size) body(i, static_cast<int>(size - i));
}
template <typename T>
inline Vec<T> LoadUpTo(const T* from, int count, T fill = T(0)) {
  return count == Vec<T>::kLanes ? Vec<T>::Load(from) : Vec<T>::LoadPartial(from, count, fill);
}
template <typename T>
inline void StoreUpTo(Vec<T> x, T* to, int count) {
  if (count == Vec<T>::kLanes) {
    x.Store(to);
  } else {
    x.StorePartial(to, count);
  }
}

// 1 / sqrt(mean(x^2) + eps).
template <typename T>
inline T InverseRms(const T* x, int64_t size, T eps) {
  Vec<T> squares = Vec<T>::Zero();
  ForVectors<T>(size, [&](int64_t i, int count) {
    const Vec<T> values = LoadUpTo(x + i, count);
    squares = Fma(values, values, squares);
  });
  return T(1) / SquareRoot(ReduceAdd(squares) / static_cast<T>(size) + eps);
}

template <typename T>
void RmsNorm(const T* x, const T* weight, int64_t size, T eps, T* y) {
  const Vec<T> scale = Vec<T>::Broadcast(InverseRms(x, size, eps));
  ForVectors<T>(size, [&](int64_t i, int count) {
    StoreUpTo(LoadUpTo(x + i, count) * scale * LoadUpTo(weight + i, count), y + i, count);
  });
}

// As RmsNormGradient; overwrites x_grad where kAdd is false.
template <typename T, bool kAdd>
void NormGradient(const T* x, const T* weight, const T* y_grad, int64_t size, T eps, T* x_grad,
                  T* weight_grad) {
  using V = Vec<T>;
  const T r = InverseRms(x, size, eps);
  V products = V::Zero();
  ForVectors<T>(size, [&](int64_t i, int count) {
    products =
        Fma(LoadUpTo(weight + i, count) * LoadUpTo(y_grad + i, count), LoadUpTo(x + i, count), products);
  });
  const V scale = V::Broadcast(r);
  const V along = V::Broadcast(-(r * r * r / static_cast<T>(size) * ReduceAdd(products)));
  ForVectors<T>(size, [&](int64_t i, int count) {
    const V values = LoadUpTo(x + i, count);
    const V dy = LoadUpTo(y_grad + i, count);
    V dx = Fma(values, along, scale * (LoadUpTo(weight + i, count) * dy));
    if constexpr (kAdd) dx = LoadUpTo(x_grad + i, count) + dx;
    StoreUpTo(dx, x_grad + i, count);
    StoreUpTo(Fma(dy * scale, values, LoadUpTo(weight_grad + i, count)), weight_grad + i, count);
  });
}

template <typename T>
void RmsNormGradient(const T* x, const T* weight, const T* y_grad, int64_t size, T eps, T* x_grad,
                     T* weight_grad) {
  NormGradient<T, true>(x, weight, y_grad, size, eps, x_grad, weight_grad);
}

// y = rotation of n by the angles (direction +1) or back (-1); y and n may be the same only if no vector is
// partial, so callers keep them apart.
template <typename T>
inline void Rotate(const T* n, const T* cosine, const T* sine, int64_t half, T direction, T* y) {
  const Vec<T> sign = Vec<T>::Broadcast(direction);
  ForVectors<T>(half, [&](int64_t i, int count) {
    const Vec<T> c = LoadUpTo(cosine + i, count);
    const Vec<T> s = sign * LoadUpTo(sine + i, count);
    const Vec<T> low = LoadUpTo(n + i, count);
    const Vec<T> high = LoadUpTo(n + half + i, count);
    StoreUpTo(low * c - high * s, y + i, count);
    StoreUpTo(high * c + low * s, y + half + i, count);
  });
}

inline constexpr int kMaxHeadDim = 512;

template <typename T>
void NormRotate(const T* x, const T* weight, const T* cosine, const T* sine, int64_t head_dim, T eps, T* y) {
  if (weight == nullptr) return Rotate(x, cosine, sine, head_dim / 2, T(1), y);
  T normed[kMaxHeadDim];
  RmsNorm(x, weight, head_dim, eps, normed);
  Rotate(normed, cosine, sine, head_dim / 2, T(1), y);
}

template <typename T>
void NormRotateGradient(const T* x, const T* weight, const T* cosine, const T* sine, const T* y_grad,
                        int64_t head_dim, T eps, T* x_grad, T* weight_grad) {
  T normed_grad[kMaxHeadDim];
  Rotate(y_grad, cosine, sine, head_dim / 2, T(-1), normed_grad);
  if (weight == nullptr) {
    for (int64_t i = 0; i < head_dim; ++i) x_grad[i] = normed_grad[i];
    return;
  }
  NormGradient<T, false>(x, weight, normed_grad, head_dim, eps, x_grad, weight_grad);
}

inline constexpr int kGateUpRows = 16;

template <typename T>
inline Vec<T> Sigmoid(Vec<T> x) {
  const Vec<T> one = Vec<T>::Broadcast(T(1));
  return one / (one + Exp(Vec<T>::Zero() - x));
}

template <typename T>
void SwiGlu(const T* gate_up, int64_t size, T* y) {
  for (int64_t block = 0; block < size; block += kGateUpRows, gate_up += 2 * kGateUpRows) {
    for (int i = 0; i < kGateUpRows; i += Vec<T>::kLanes) {
      const Vec<T> gate = Vec<T>::Load(gate_up + i);
      const Vec<T> up = Vec<T>::Load(gate_up + kGateUpRows + i);
      (gate * Sigmoid(gate) * up).Store(y + block + i);
    }
  }
}

template <typename T>
void SwiGluGradient(const T* gate_up, const T* y_grad, int64_t size, T* gate_up_grad) {
  const Vec<T> one = Vec<T>::Broadcast(T(1));
  for (int64_t block = 0; block < size; block += kGateUpRows) {
    for (int i = 0; i < kGateUpRows; i += Vec<T>::kLanes) {
      const Vec<T> gate = Vec<T>::Load(gate_up + 2 * block + i);
      const Vec<T> up = Vec<T>::Load(gate_up + 2 * block + kGateUpRows + i);
      const Vec<T> dy = Vec<T>::Load(y_grad + block + i);
      const Vec<T> s = Sigmoid(gate);
      (dy * up * s * Fma(gate, one - s, one)).Store(gate_up_grad + 2 * block + i);
      (dy * gate * s).Store(gate_up_grad + 2 * block + kGateUpRows + i);
    }
  }
}

template <typename T>
void Add(const T* x, int64_t size, T* y) {
  ForVectors<T>(size, [&](int64_t i, int count) {
    StoreUpTo(LoadUpTo(y + i, count) + LoadUpTo(x + i, count), y + i, count);
  });
}

// max(x) * scale; scale > 0.
template <typename T>
inline T ScaledMax(const T* x, int64_t size, T scale) {
  Vec<T> highest = Vec<T>::Broadcast(x[0]);
  ForVectors<T>(size, [&](int64_t i, int count) { highest = Max(highest, LoadUpTo(x + i, count, x[0])); });
  return ReduceMax(highest) * scale;
}

template <typename T>
TokenScore<T> ScoreRow(const T* logits, int64_t size, int64_t target, T inverse_temperature) {
  using V = Vec<T>;
  const T highest = ScaledMax(logits, size, inverse_temperature);
  const V scale = V::Broadcast(inverse_temperature);
  const V shift = V::Broadcast(-highest);
  V sum = V::Zero(), weighted = V::Zero();
  ForVectors<T>(size, [&](int64_t i, int count) {
    const V shifted = Fma(LoadUpTo(logits + i, count), scale, shift);
    V exponential = Exp(shifted);
    if (count < V::kLanes) {  // lanes past the end hold exp(-highest)
      T lanes[V::kLanes];
      exponential.Store(lanes);
      exponential = V::LoadPartial(lanes, count);
    }
    sum = sum + exponential;
    weighted = Fma(exponential, shifted, weighted);
  });
  const T total = ReduceAdd(sum);
  const T log_total = Logarithm(total);
  const T shifted_target = logits[target] * inverse_temperature - highest;
  return {shifted_target - log_total, log_total - ReduceAdd(weighted) / total, highest + log_total};
}

template <typename T>
void ScoreRowGradient(T* logits, int64_t size, int64_t target, T inverse_temperature, T log_sum_exp, T grad) {
  using V = Vec<T>;
  const V scale = V::Broadcast(inverse_temperature);
  const V shift = V::Broadcast(-log_sum_exp);
  const V factor = V::Broadcast(-(inverse_temperature * grad));
  ForVectors<T>(size, [&](int64_t i, int count) {
    const V probability = Exp(Fma(LoadUpTo(logits + i, count), scale, shift));
    StoreUpTo(probability * factor, logits + i, count);
  });
  logits[target] += inverse_temperature * grad;
}

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ROWS_SIMD_H_
