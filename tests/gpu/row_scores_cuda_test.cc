#include "core/kernels/training/row_scores_cuda.h"

#include <vector>

#include "core/kernels/kernel_set.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("scores of tokens and their gradient on the device equal the CPU's", "", __nv_bfloat16,
                   float) {
  for (const int64_t ids : {5, 4099, 151669}) {
    INFO(ids);
    constexpr int64_t kRows = 3;
    const int64_t stride = RoundUp(ids, 8) + 8;
    std::vector<float> logits = RandomFloats(kRows * stride, 1);
    for (float& logit : logits) logit *= 30;
    const std::vector<int32_t> targets = {0, static_cast<int32_t>(ids - 1), static_cast<int32_t>(ids / 2)};
    const std::vector<float> log_prob_grads = {0.5f, -2.0f, 0.0f};
    std::vector<float> log_probs(kRows), entropies(kRows), log_sum_exps(kRows), logit_grads(kRows * stride);
    const DeviceArray device_logits(logits), device_log_probs(log_probs), device_entropies(entropies),
        device_log_sum_exps(log_sum_exps), device_log_prob_grads(log_prob_grads);
    const DeviceVector<int32_t> device_targets(targets);
    const StoredArray<TestType> device_logit_grads(std::vector<float>(kRows * stride, 7.0f));
    const RowScoring on_device = {kRows,
                                  ids,
                                  stride,
                                  0.7f,
                                  device_logits.get(),
                                  device_targets.get(),
                                  device_log_probs.get(),
                                  device_entropies.get(),
                                  device_log_sum_exps.get()};
    REQUIRE(LaunchRowScoring(on_device, nullptr) == cudaSuccess);
    REQUIRE(LaunchRowScoringGradient<TestType>(
                {on_device, device_log_prob_grads.get(), device_logit_grads.get()}, nullptr) == cudaSuccess);
    const RowScoring on_host = {kRows,
                                ids,
                                stride,
                                0.7f,
                                logits.data(),
                                targets.data(),
                                log_probs.data(),
                                entropies.data(),
                                log_sum_exps.data()};
    RowScoringReference(on_host);
    RowScoringGradientReference({on_host, log_prob_grads.data(), logit_grads.data()}, kStoredDtype<TestType>);
    CHECK(Distance(device_log_probs.Read(), log_probs) < 1e-5);
    CHECK(Distance(device_entropies.Read(), entropies) < 1e-4);
    CHECK(Distance(device_log_sum_exps.Read(), log_sum_exps) < 1e-6);
    CHECK(Distance(device_logit_grads.Read(), logit_grads) < kRounding<TestType> + 1e-5);
  }
}

}  // namespace
}  // namespace warpsmith
