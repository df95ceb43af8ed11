#include "rollout_workers/weight_transport.h"

#include <string>

#include "absl/time/clock.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_file.h"

namespace warpsmith {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

TEST_CASE("a transport that there is not is refused by its name, with those that there are") {
  const absl::Status status = MakeTransport("carrier pigeon", Tiny(), {}).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(MessageOf(status) ==
        "The manifest's transport is \"carrier pigeon\"; give file, cuda_memory or nccl");
}

TEST_CASE("a file comes by its name and by none, in the dtype that the engine computes from") {
  const TemporaryDirectory directory;
  const OfferedWeights offered = WriteWeightsFile(Tiny(), 1, 7, directory.path() / "w", FileForm::kBfloat16);
  for (const char* name : {"", "file"}) {
    const LoadedWeights on_cpu = MakeTransport(name, Tiny(), {}).value()->Prepare(offered, Soon()).value();
    CHECK(on_cpu.policy_version == 7);
    CHECK(on_cpu.parameters->dtype() == at::kFloat);
    const LoadedWeights on_gpu =
        MakeTransport(name, Tiny(), CudaPlacement{}).value()->Prepare(offered, Soon()).value();
    CHECK(on_gpu.parameters->dtype() == at::kBFloat16);
  }
}

TEST_CASE(
    "memory of a GPU is no transport for an engine on the CPU, and for one on a GPU in what it computes in") {
  const std::string name = GENERATE("cuda_memory", "nccl");
  const absl::Status status = MakeTransport(name, Tiny(), {}).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(MessageOf(status), Catch::Contains("CPU") && Catch::Contains("publish a file"));
  const absl::Status dtype = MakeTransport(name, Tiny(), CudaPlacement{})
                                 .value()
                                 ->Prepare({.transport = name, .dtype = "float32"}, Soon())
                                 .status();
  CHECK(absl::IsInvalidArgument(dtype));
  CHECK_THAT(MessageOf(dtype), Catch::Contains("float32") && Catch::Contains("give bfloat16"));
  const absl::Status other = MakeTransport(name, Tiny(), CudaPlacement{.dtype = DeviceDtype::kFloat16})
                                 .value()
                                 ->Prepare({.transport = name, .dtype = "bfloat16"}, Soon())
                                 .status();
  CHECK(absl::IsInvalidArgument(other));
  CHECK_THAT(MessageOf(other), Catch::Contains("give float16"));
  const absl::Status wide =
      MakeTransport("cuda_memory", Tiny(), CudaPlacement{.dtype = DeviceDtype::kFloat32}).status();
  CHECK(absl::IsFailedPrecondition(wide));
  CHECK_THAT(MessageOf(wide), Catch::Contains("computes in float32") && Catch::Contains("publish a file"));
}

TEST_CASE("the memory of one GPU is no transport for several, a broadcast is") {
  const CudaPlacement two{.devices = {0, 1}};
  const absl::Status status = MakeTransport("cuda_memory", Tiny(), two).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(MessageOf(status), Catch::Contains("2 GPUs") && Catch::Contains("nccl"));
  CHECK(MakeTransport("nccl", Tiny(), two).ok());
}

}  // namespace warpsmith
