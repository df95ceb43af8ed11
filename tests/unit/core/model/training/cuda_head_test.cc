// On a GPU made of the host.
#include "core/model/training/cuda_head.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kSize = 8, kIds = 8;

struct Head {
  explicit Head(int64_t rows_max, bool keeps_logits = false)
      : head(Config(), kIds, rows_max, products, nullptr) {
    for (int64_t i = 0; i < kIds * kSize; ++i) weights[i] = static_cast<float>(i % 11) * 0.1f - 0.5f;
    for (size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(i % 7) - 3.0f;
    batch.packed.Append({1, 2, 3, 4});
    batch.targets = {3, -1, 0, 7};
    on_device.Begin(batch, /*sorts=*/false, kIds, kIds);
    REQUIRE(arena
                .Arrange([&] {
                  on_device.Place(arena);
                  head.Place(on_device, /*has_backward=*/true, keeps_logits, arena);
                })
                .ok());
    REQUIRE(on_device.Upload(nullptr).ok());
  }

  static ModelConfig Config() {
    ModelConfig config;
    config.hidden_size = kSize;
    config.vocab_size = kIds;
    return config;
  }

  CudaHeadWeights<float> Weights() {
    return {norm.data(), weights.data(), norm_gradient.data(), head_gradient.data()};
  }

  // Returns the gradient of the sum of the log-probabilities.
  std::vector<float> Gradient() {
    std::vector<float> parts(4 * kSize), gradient(4 * kSize, 7.0f);
    REQUIRE(head.Score(Weights(), state.data(), &log_probs, &entropies).ok());
    REQUIRE(head.Backward(Weights(), {1, 1, 1}, parts.data(), gradient.data()).ok());
    return gradient;
  }

  double Sum() {
    std::vector<float> of_rows, ignored;
    REQUIRE(head.Score(Weights(), state.data(), &of_rows, &ignored).ok());
    return double{of_rows[0]} + of_rows[1] + of_rows[2];
  }

  MatrixProducts<float> products{nullptr, {nullptr, 0}};
  CudaHead<float> head;
  std::vector<float> weights = std::vector<float>(kIds * kSize), norm = std::vector<float>(kSize, 1.0f),
                     norm_gradient = std::vector<float>(kSize),
                     head_gradient = std::vector<float>(kIds * kSize), state = std::vector<float>(4 * kSize),
                     log_probs, entropies;
  ScoredBatch batch;
  CudaBatch on_device;
  DeviceArena arena;
};

TEST_CASE("scores and gradients do not depend on how many rows have logits at once") {
  Head whole(8), cut(2);
  const std::vector<float> gradient = whole.Gradient();
  CHECK(cut.Gradient() == gradient);
  CHECK(cut.log_probs == whole.log_probs);
  CHECK(cut.norm_gradient == whole.norm_gradient);
  for (size_t i = 0; i < whole.head_gradient.size(); ++i) {
    CHECK(cut.head_gradient[i] == Approx(whole.head_gradient[i]).margin(1e-6));
  }
}

TEST_CASE("logits that wait and logits that are computed again give the same bits") {
  Head kept(2, /*keeps_logits=*/true), again(2);
  CHECK(kept.Gradient() == again.Gradient());
  CHECK(kept.head_gradient == again.head_gradient);
  CHECK(kept.log_probs == again.log_probs);
}

TEST_CASE("the gradient of a state is the slope of the scores, and 0 in rows without a target") {
  const std::vector<float> gradient = Head(8).Gradient();
  for (size_t i = 0; i < gradient.size(); ++i) {
    Head above(8), below(8);
    above.state[i] += 1e-2f;
    below.state[i] -= 1e-2f;
    CHECK(gradient[i] == Approx((above.Sum() - below.Sum()) / 2e-2).epsilon(1e-2).margin(2e-4));
    if (i / kSize == 1) CHECK(gradient[i] == 0);
  }
}

}  // namespace
}  // namespace warpsmith
