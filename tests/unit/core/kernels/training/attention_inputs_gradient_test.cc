#include "core/kernels/training/attention_inputs_gradient.h"

#include <numeric>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kRows = 2, kKvHeads = 2, kGroup = 2, kHeadDim = 8, kHeads = kKvHeads * (kGroup + 2);

std::vector<float> Random(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(2 * UniformDouble(seed, i) - 1);
  return values;
}

struct Case {
  std::vector<float> qkv = Random(kRows * kHeads * kHeadDim, 1), bias = Random(kHeads * kHeadDim, 2),
                     query_norm = Random(kHeadDim, 3), key_norm = Random(kHeadDim, 4),
                     query_grad = Random(kRows * kKvHeads * kGroup * kHeadDim, 5),
                     key_grad = Random(kRows * kKvHeads * kHeadDim, 6),
                     value_grad = Random(kRows * kKvHeads * kHeadDim, 7),
                     cosines = Random(3 * kHeadDim / 2, 8), sines = Random(3 * kHeadDim / 2, 9);
  std::vector<int32_t> positions = {2, 1}, entries = {0, 1};
  bool has_norm = true;

  AttentionInputs<float> Inputs() {
    return {.rows = kRows,
            .num_kv_heads = kKvHeads,
            .group_size = kGroup,
            .head_dim = kHeadDim,
            .eps = 1e-6f,
            .qkv = qkv.data(),
            .bias = bias.data(),
            .query_norm = has_norm ? query_norm.data() : nullptr,
            .key_norm = has_norm ? key_norm.data() : nullptr,
            .cosines = cosines.data(),
            .sines = sines.data(),
            .positions = positions.data(),
            .kv_entries = entries.data()};
  }

  // Returns the sum of attention's inputs, each times its gradient.
  double Loss() {
    std::vector<float> queries(query_grad.size()), keys(key_grad.size()), values(value_grad.size());
    AttentionInputs<float> inputs = Inputs();
    inputs.queries = queries.data();
    inputs.key_pages = keys.data();
    inputs.value_pages = values.data();
    AttentionInputsReference(inputs, DeviceDtype::kFloat32);
    return std::inner_product(queries.begin(), queries.end(), query_grad.begin(), 0.0) +
           std::inner_product(keys.begin(), keys.end(), key_grad.begin(), 0.0) +
           std::inner_product(values.begin(), values.end(), value_grad.begin(), 0.0);
  }

  double Slope(float& of) {
    const float before = of, step = 1e-2f;
    of = before + step;
    const double above = Loss();
    of = before - step;
    const double below = Loss();
    of = before;
    return (above - below) / (2 * step);
  }
};

TEST_CASE("the gradient of attention's inputs is the slope of what attention reads") {
  for (const bool has_norm : {false, true}) {
    INFO((has_norm ? "with norms" : "without norms"));
    Case c;
    c.has_norm = has_norm;
    std::vector<float> qkv_grad(c.qkv.size()), query_norm_grad(kHeadDim, 1.0f), key_norm_grad(kHeadDim, 2.0f);
    AttentionInputsGradient<float> gradient;
    gradient.forward = c.Inputs();
    gradient.query_grad = c.query_grad.data();
    gradient.key_grad = c.key_grad.data();
    gradient.value_grad = c.value_grad.data();
    gradient.qkv_grad = qkv_grad.data();
    gradient.query_norm_grad = has_norm ? query_norm_grad.data() : nullptr;
    gradient.key_norm_grad = has_norm ? key_norm_grad.data() : nullptr;
    AttentionInputsGradientReference(gradient, DeviceDtype::kFloat32);
    for (size_t i = 0; i < c.qkv.size(); ++i) {
      CHECK(qkv_grad[i] == Approx(c.Slope(c.qkv[i])).epsilon(1e-2).margin(2e-3));
    }
    for (int64_t d = 0; d < kHeadDim && has_norm; ++d) {
      CHECK(query_norm_grad[d] == Approx(1 + c.Slope(c.query_norm[d])).epsilon(1e-2).margin(2e-3));
      CHECK(key_norm_grad[d] == Approx(2 + c.Slope(c.key_norm[d])).epsilon(1e-2).margin(2e-3));
    }
  }
}

}  // namespace
}  // namespace warpsmith
