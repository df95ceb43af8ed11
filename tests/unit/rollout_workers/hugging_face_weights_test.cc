#include "core/model/hugging_face_weights.h"

#include "core/checkpoint/tensor_directory.h"
#include "core/model/parameters.h"
#include "rollout_workers/weights.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

TEST_CASE("a checkpoint's weights are version 0, to the bit, and its errors come through") {
  const TemporaryDirectory directory;
  CHECK(absl::IsNotFound(HuggingFaceWeights(OddConfig(), directory.path()).status()));
  Parameters parameters{ParameterLayout(OddConfig())};
  parameters.InitRandom(5);
  REQUIRE(WriteTensorDirectory(directory.path(), HuggingFaceTensors(parameters.layout(), {}), 4096,
                               HuggingFaceSource(parameters))
              .ok());
  const LoadedWeights loaded = HuggingFaceWeights(OddConfig(), directory.path()).value();
  CHECK(loaded.policy_version == 0);
  CHECK(loaded.sha256 == RandomWeights(OddConfig(), 5).sha256);
}

}  // namespace warpsmith
