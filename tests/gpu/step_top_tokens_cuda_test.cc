// Top tokens of an engine on a GPU, beside its samples.
#include "rollout_workers/device/step_top_tokens_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"
#include "tests/support/device_group_fixture.h"

namespace warpsmith {

TEST_CASE(
    "top tokens in float32 are the CPU's, and samples in any dtype have the bits that they have without") {
  GenerationJob job = GroupJob(SmallDeviceModel(), 3, 2, 0, 40);
  EngineOptions cpu = GroupOptions({0});
  cpu.cuda.reset();
  job.num_top_tokens = 20;
  const GroupSamples expected = RunGroupJob(SmallDeviceModel(), cpu, job);
  for (const DeviceDtype dtype : {DeviceDtype::kFloat32, DeviceDtype::kBfloat16}) {
    EngineOptions options = GroupOptions({0});
    options.cuda->dtype = dtype;
    job.num_top_tokens = 20;
    const GroupSamples found = RunGroupJob(SmallDeviceModel(), options, job);
    job.num_top_tokens = 0;
    CHECK(SameBits(found, RunGroupJob(SmallDeviceModel(), options, job)));
    int num_tokens = 0, num_same = 0;
    double difference_max = 0;
    for (const auto& [place, sample] : found) {
      REQUIRE(sample.top_tokens.size() == sample.answer_token_ids.size());
      for (size_t i = 0; i < sample.top_tokens.size(); ++i) {
        const std::vector<TokenLogProb>& top = sample.top_tokens[i];
        REQUIRE(top.size() == 20);
        CHECK(top[0].token_id == sample.answer_token_ids[i]);  // greedy
        CHECK(top[0].log_prob == sample.log_probs[i]);
        const auto is_before = [](const TokenLogProb& a, const TokenLogProb& b) {
          return a.log_prob > b.log_prob;
        };
        CHECK(std::is_sorted(top.begin(), top.end(), is_before));
        if (dtype != DeviceDtype::kFloat32) continue;
        for (size_t rank = 0; rank < top.size(); ++rank) {
          const TokenLogProb& other = expected.at(place).top_tokens.at(i)[rank];
          ++num_tokens;
          num_same += top[rank].token_id == other.token_id ? 1 : 0;  // but for neighbours within rounding
          difference_max = std::max<double>(difference_max, std::abs(top[rank].log_prob - other.log_prob));
        }
      }
    }
    if (dtype != DeviceDtype::kFloat32) continue;
    std::printf("%d of %d top tokens in float32 are the CPU's, log-probs within %.1e\n", num_same, num_tokens,
                difference_max);
    CHECK(num_same >= num_tokens * 99 / 100);
    CHECK(difference_max <= 1e-4);
  }
}

}  // namespace warpsmith
