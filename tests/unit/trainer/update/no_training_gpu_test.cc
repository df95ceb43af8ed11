#include <string>

#include "tests/support/catch.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {
namespace {

TEST_CASE("a build without CUDA opens no GPU, and names the key and the way out") {
  CHECK(TrainingGpu::Open(0, /*num_ranks=*/1).status() ==
        absl::UnimplementedError(
            "trainer.device: this build has no CUDA for GPU 0: make one with ./dev build cuda, "
            "or give cpu"));
}

}  // namespace
}  // namespace warpsmith
