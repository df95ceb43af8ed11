#include "core/kernels/kernel_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

template <typename T>
std::vector<T> Random(int64_t size, uint64_t seed) {
  std::vector<T> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<T>(4 * UniformDouble(seed, i) - 2);
  return values;
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::vector<CpuVariant> Variants() {
  std::vector<CpuVariant> variants = {CpuVariant::kPortable};
  if (BestCpuVariant() >= CpuVariant::kAvx2) variants.push_back(CpuVariant::kAvx2);
  if (BestCpuVariant() >= CpuVariant::kAvx512) variants.push_back(CpuVariant::kAvx512);
  return variants;
}

struct Sizes {
  int64_t rows, columns, depth;
};

// C = A B^T by packed panels.
template <typename T>
std::vector<T> MultiplyPacked(const KernelSet<T>& kernels, Sizes s, ProductMode mode) {
  const std::vector<T> a = Random<T>(s.rows * s.depth, 1), b = Random<T>(s.columns * s.depth, 2);
  std::vector<T> c = Random<T>(s.rows * s.columns, 3);
  std::vector<T> panels(RoundUp(s.columns, kPanelColumns) * s.depth);
  kernels.pack_panels(b.data(), s.columns, s.depth, s.depth, panels.data());
  Product<T> p;
  p.rows = s.rows;
  p.columns = s.columns;
  p.depth = s.depth;
  p.a = a.data();
  p.a_row_stride = s.depth;
  p.b = panels.data();
  p.b_depth_stride = kPanelColumns;
  p.b_panel_stride = s.depth * kPanelColumns;
  p.c = c.data();
  p.c_row_stride = s.columns;
  p.mode = mode;
  kernels.multiply(p);
  return c;
}

// The contract of Product in plain loops.
template <typename T>
std::vector<T> MultiplyReference(Sizes s, ProductMode mode) {
  const std::vector<T> a = Random<T>(s.rows * s.depth, 1), b = Random<T>(s.columns * s.depth, 2);
  std::vector<T> c = Random<T>(s.rows * s.columns, 3);
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t column = 0; column < s.columns; ++column) {
      T& out = c[r * s.columns + column];
      T sum = mode == ProductMode::kAccumulate ? out : T(0);
      for (int64_t k = 0; k < s.depth; ++k) sum = std::fma(a[r * s.depth + k], b[column * s.depth + k], sum);
      out = mode == ProductMode::kAdd ? out + sum : sum;
    }
  }
  return c;
}

TEST_CASE("a product is the chain of fused additions that its contract says, to the bit, on every variant") {
  for (const Sizes s :
       {Sizes{1, 1, 1}, {7, 64, 5}, {13, 101, 40}, {48, 130, 33}, {6, 15, 200}, {5, 129, 64}}) {
    for (const ProductMode mode : {ProductMode::kStore, ProductMode::kAccumulate, ProductMode::kAdd}) {
      for (const CpuVariant variant : Variants()) {
        INFO(KernelsOf<float>(variant).name << " " << s.rows << " x " << s.columns << " x " << s.depth);
        CHECK(
            SameBits(MultiplyPacked(KernelsOf<float>(variant), s, mode), MultiplyReference<float>(s, mode)));
        CHECK(SameBits(MultiplyPacked(KernelsOf<double>(variant), s, mode),
                       MultiplyReference<double>(s, mode)));
      }
    }
  }
}

// Results of every operation but the product, one after another.
template <typename T>
std::vector<T> RunAll(const KernelSet<T>& k, int64_t size) {
  const int64_t even = 2 * size, blocks = 16 * size;
  const std::vector<T> x = Random<T>(32 * size, 4), w = Random<T>(even, 5), dy = Random<T>(blocks, 6);
  const T eps = static_cast<T>(1e-6);
  std::vector<T> all(size + 2 * size + 3 * even + 2 * even + blocks + 2 * blocks + size + 3);
  T* next = all.data();
  const auto take = [&](int64_t count) { return (next += count) - count; };
  k.rms_norm(x.data(), w.data(), size, eps, take(size));
  T* x_grad = take(size);
  k.rms_norm_gradient(x.data(), w.data(), dy.data(), size, eps, x_grad, take(size));
  k.norm_rotate(x.data(), w.data(), x.data() + 7, x.data() + 9, even, eps, take(even));
  T* rotated_grad = take(even);
  k.norm_rotate_gradient(x.data(), w.data(), x.data() + 7, x.data() + 9, dy.data(), even, eps, rotated_grad,
                         take(even));
  k.norm_rotate(x.data(), nullptr, x.data() + 7, x.data() + 9, even, eps, take(even));
  k.norm_rotate_gradient(x.data(), nullptr, x.data() + 7, x.data() + 9, dy.data(), even, eps, take(even),
                         nullptr);
  k.swiglu(x.data(), blocks, take(blocks));
  k.swiglu_gradient(x.data(), dy.data(), blocks, take(2 * blocks));
  const TokenScore<T> score = k.score_row(x.data(), size, size / 2, static_cast<T>(1.25));
  T* logits = take(size);
  std::copy_n(x.data(), size, logits);
  k.score_row_gradient(logits, size, size / 2, static_cast<T>(1.25), score.log_sum_exp, static_cast<T>(0.7));
  T* scores = take(3);
  scores[0] = score.log_prob, scores[1] = score.entropy, scores[2] = score.log_sum_exp;
  return all;
}

TEST_CASE("row operations give the same bits on every variant") {
  for (const int64_t size : {1, 15, 16, 40, 129}) {
    for (const CpuVariant variant : Variants()) {
      INFO(KernelsOf<float>(variant).name << " size " << size);
      CHECK(SameBits(RunAll(KernelsOf<float>(variant), size),
                     RunAll(KernelsOf<float>(CpuVariant::kPortable), size)));
      CHECK(SameBits(RunAll(KernelsOf<double>(variant), size),
                     RunAll(KernelsOf<double>(CpuVariant::kPortable), size)));
    }
  }
}

TEST_CASE("without a norm's weight a head is rotated as it is, and its gradient back, in place as well") {
  const std::vector<double> x = {1, 2, 3, 4}, cosine = {0.6, 0.0}, sine = {0.8, 1.0};
  const KernelSet<double>& k = Kernels<double>();
  std::vector<double> y(4);
  k.norm_rotate(x.data(), nullptr, cosine.data(), sine.data(), 4, 1e-6, y.data());
  const std::vector<double> rotated = {0.6 * 1 - 0.8 * 3, -4, 0.6 * 3 + 0.8 * 1, 2};
  for (int i = 0; i < 4; ++i) CHECK(y[i] == Approx(rotated[i]));
  k.norm_rotate_gradient(x.data(), nullptr, cosine.data(), sine.data(), y.data(), 4, 1e-6, y.data(), nullptr);
  for (int i = 0; i < 4; ++i) CHECK(y[i] == Approx(x[i]));
}

struct AttentionSizes {
  int64_t rows, keys, head_dim;
};

// Output, sums and all gradients of a causal block whose last row sees all keys.
template <typename T>
std::vector<T> RunAttention(const KernelSet<T>& kernels, AttentionSizes s) {
  const int64_t padded = RoundUp(s.keys, kPanelColumns), h = s.head_dim;
  const std::vector<T> q = Random<T>(s.rows * h, 1), k = Random<T>(s.keys * h, 2),
                       v = Random<T>(s.keys * h, 3);
  const std::vector<T> out_grad = Random<T>(s.rows * h, 4);
  std::vector<T> panels(2 * padded * h), scores(2 * s.rows * padded);
  std::vector<T> all(s.rows * (2 * h + 1) + 2 * s.keys * h);
  kernels.pack_panels(k.data(), s.keys, h, h, panels.data());
  kernels.pack_panels(v.data(), s.keys, h, h, panels.data() + padded * h);
  AttentionGradient<T> g;
  Attention<T>& a = g.forward;
  a = {s.rows,
       h,
       s.keys - s.rows + 1,
       1,
       static_cast<T>(0.3),
       q.data(),
       h,
       panels.data(),
       v.data(),
       h,
       scores.data(),
       all.data(),
       h,
       all.data() + s.rows * h};
  kernels.attention(a);
  g.key = k.data();
  g.key_stride = h;
  g.value_panels = panels.data() + padded * h;
  g.out_grad = out_grad.data();
  g.score_grads = scores.data() + s.rows * padded;
  g.query_grad = all.data() + s.rows * (h + 1);
  g.key_grad = g.query_grad + s.rows * h;
  g.value_grad = g.key_grad + s.keys * h;
  g.grad_stride = h;
  kernels.attention_gradient(g);
  return all;
}

TEST_CASE("attention and its gradient give the same bits on every variant") {
  for (const AttentionSizes s :
       {AttentionSizes{1, 1, 8}, {5, 70, 20}, {48, 128, 32}, {3, 200, 64}, {kAttentionRowsMax, 130, 8}}) {
    for (const CpuVariant variant : Variants()) {
      INFO(KernelsOf<float>(variant).name << " " << s.rows << " rows, " << s.keys << " keys");
      CHECK(SameBits(RunAttention(KernelsOf<float>(variant), s),
                     RunAttention(KernelsOf<float>(CpuVariant::kPortable), s)));
      CHECK(SameBits(RunAttention(KernelsOf<double>(variant), s),
                     RunAttention(KernelsOf<double>(CpuVariant::kPortable), s)));
    }
  }
}

TEST_CASE("attention equals softmax of scaled products, in float64") {
  const AttentionSizes s{5, 70, 20};
  const std::vector<double> all = RunAttention(Kernels<double>(), s);
  const std::vector<double> q = Random<double>(s.rows * 20, 1), k = Random<double>(s.keys * 20, 2);
  const std::vector<double> v = Random<double>(s.keys * 20, 3);
  for (int64_t r = 0; r < s.rows; ++r) {
    double total = 0;
    std::vector<double> out(20);
    for (int64_t j = 0; j <= s.keys - s.rows + r; ++j) {
      double score = 0;
      for (int64_t d = 0; d < 20; ++d) score += q[r * 20 + d] * k[j * 20 + d];
      total += std::exp(0.3 * score);
      for (int64_t d = 0; d < 20; ++d) out[d] += std::exp(0.3 * score) * v[j * 20 + d];
    }
    for (int64_t d = 0; d < 20; ++d) CHECK(all[r * 20 + d] == Approx(out[d] / total).epsilon(1e-13));
    CHECK(all[s.rows * 20 + r] == Approx(std::log(total)).epsilon(1e-13));
  }
}

TEST_CASE("swiglu saturates without overflow") {
  std::vector<float> gate_up(32, 1.0f), y(16);
  const float gates[] = {-1000.0f, -88.5f, -87.0f, -1.0f, 0.0f, 1.0f, 88.0f, 1000.0f};
  std::copy(std::begin(gates), std::end(gates), gate_up.begin());
  Kernels<float>().swiglu(gate_up.data(), 16, y.data());
  for (int i = 0; i < 8; ++i) {
    const double expected = gates[i] / (1 + std::exp(-static_cast<double>(gates[i])));
    CHECK(y[i] == Approx(expected).epsilon(1e-6).margin(1e-30));
  }
}

}  // namespace
}  // namespace warpsmith
