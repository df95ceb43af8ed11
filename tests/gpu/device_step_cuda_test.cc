// Steps in float32, the form in which the order of a step's kernels is judged.
#include "core/model/device_step_cuda.h"

#include <cstdio>

#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"

namespace warpsmith {

TEST_CASE("logits in float32 are those of float64 within a ten-thousandth, of every architecture") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    for (const std::vector<int64_t>& buckets : std::vector<std::vector<int64_t>>{{64}, {1, 4, 32, 64}}) {
      INFO(name << ", " << buckets.size() << " buckets");
      const Parameters parameters = DeviceParameters(config, 5);
      const DeviceDecoderOptions options = SmallOptions(buckets, DeviceDtype::kFloat32);
      absl::StatusOr<std::unique_ptr<DeviceDecoder>> decoder = DeviceDecoder::Create(config, options);
      INFO(decoder.status().message());
      REQUIRE(decoder.ok());
      REQUIRE((*decoder)->SetParameters(parameters).ok());
      const DecoderErrors errors = MeasureErrors(**decoder, options, parameters);
      std::printf("%s, %zu buckets, float32: largest error %.1e of logits of %.1e\n", name.c_str(),
                  buckets.size(), errors.device_max, errors.exact.value());
      CHECK(errors.device_max <= 1e-4 * errors.exact.value());
    }
  }
}

}  // namespace warpsmith
