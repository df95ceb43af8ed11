#include "core/model/training/layer_activations.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

using Range = std::pair<float*, float*>;

TEST_CASE("activations lie apart, fill their memory, and wait where the recomputation says") {
  const ModelConfig config = OddConfig();
  const int64_t t = 7;
  for (const Recomputation recomputation : kRecomputations) {
    INFO(NameOf(recomputation));
    std::vector<float> kept(LayerActivations<float>::KeptSize(config, t, recomputation));
    std::vector<float> shared(LayerActivations<float>::SharedSize(config, t, recomputation));
    const auto a = LayerActivations<float>::Bind(config, t, recomputation, kept.data(), shared.data());
    std::vector<Range> ranges = {{a.qkv, a.qkv + t * config.qkv_size()},
                                 {a.attended, a.attended + t * config.query_size()},
                                 {a.log_sum_exp, a.log_sum_exp + t * config.num_attention_heads},
                                 {a.middle, a.middle + t * config.hidden_size},
                                 {a.gate_up, a.gate_up + 2 * t * config.intermediate_size}};
    const auto waits = [&](float* values) {
      return values >= kept.data() && values < kept.data() + kept.size();
    };
    CHECK(waits(a.qkv) == KeepsInputs(recomputation));
    CHECK(waits(a.middle) == KeepsInputs(recomputation));
    CHECK(waits(a.attended) == KeepsAttention(recomputation));
    CHECK(waits(a.log_sum_exp) == KeepsAttention(recomputation));
    CHECK(waits(a.gate_up) == KeepsMlp(recomputation));
    std::sort(ranges.begin(), ranges.end());
    int64_t size = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      size += ranges[i].second - ranges[i].first;
      CHECK((i == 0 || ranges[i - 1].second <= ranges[i].first));
    }
    CHECK(size == static_cast<int64_t>(kept.size() + shared.size()));
  }
}

}  // namespace
}  // namespace warpsmith
