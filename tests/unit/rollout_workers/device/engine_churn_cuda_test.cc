// An engine on a GPU made of the host, among jobs that come and go while it sleeps and takes new weights.
#include "tests/bench/gpu_engine_churn.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"

namespace warpsmith::device {

TEST_CASE("jobs that come and go while the engine sleeps and weights change lose no answer and no page") {
  ModelConfig config = SmallDeviceModel();
  config.head_dim = 64;
  config.num_hidden_layers = 1;
  EngineOptions options{.num_slots = 24, .context_tokens_max = 256};
  options.cuda = CudaPlacement{.devices = {0}};
  const ChurnResult result =
      RunChurn(config, options, 25, [&](uint64_t version) { return RandomWeights(config, version); });
  INFO(result.num_lost << " lost, " << result.num_answered_twice << " twice, " << result.num_failed
                       << " failed, " << result.num_untold_versions << " without versions, "
                       << result.num_pages_missing << " pages missing");
  CHECK(result.ok());
  CHECK(result.num_sleeps > 0);
  CHECK(result.num_weight_changes > 5);
}

}  // namespace warpsmith::device
