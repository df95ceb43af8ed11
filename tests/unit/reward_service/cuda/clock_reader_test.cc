#include "reward_service/cuda/clock_reader.h"

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith::cuda {
namespace {

constexpr char kFirstGpu[] = "GPU-abababab-abab-abab-abab-ababababab00";

absl::StatusOr<std::unique_ptr<ClockReader>> OpenFake(const std::string& uuid = kFirstGpu) {
  return ClockReader::Open(uuid, (FakeCudaFolder() / "libnvidia-ml.so.1").string());
}

TEST_CASE("clocks are read with the reasons why they are no higher") {
  FakeGpu gpu;
  const auto reader = OpenFake();
  REQUIRE(reader.ok());
  CHECK((*reader)->query_us() > 0);
  gpu.Say("throttle 1 1\n");
  const auto before = (*reader)->Read(), throttled = (*reader)->Read(), after = (*reader)->Read();
  REQUIRE((before.ok() && throttled.ok() && after.ok()));
  CHECK(before->sm_mhz == 990);
  CHECK(before->memory_mhz == 2600);
  CHECK(before->reasons == 0);
  CHECK(throttled->sm_mhz == 660);
  CHECK(throttled->reasons == kReasonPowerCap);
  CHECK(after->sm_mhz == 990);
}

TEST_CASE("where there is no NVML, or it does not know the GPU, nothing is read, and it is said why") {
  const FakeGpu gpu("gpus 2\n");
  CHECK(OpenFake("GPU-abababab-abab-abab-abab-ababababab01").ok());
  CHECK(OpenFake("GPU-abababab-abab-abab-abab-ababababab02").status() ==
        absl::NotFoundError("NVML knows no GPU GPU-abababab-abab-abab-abab-ababababab02: an instance of MIG "
                            "has no clocks of its own"));
  CHECK(absl::IsNotFound(ClockReader::Open(kFirstGpu, "/nowhere/libnvidia-ml.so.1").status()));
  // A library that is something else.
  CHECK(absl::IsFailedPrecondition(
      ClockReader::Open(kFirstGpu, (FakeCudaFolder() / "libcuda.so.1").string()).status()));
}

TEST_CASE("a GPU that does not tell its clocks says so, at once or later") {
  FakeGpu gpu("fail nvmlInit_v2 9\n");
  CHECK(OpenFake().status() == absl::InternalError("nvmlInit: an error of the script (9)"));
  gpu.Say("fail nvmlDeviceGetClockInfo 3\n");
  CHECK(OpenFake().status() == absl::InternalError("nvmlDeviceGetClockInfo: Not Supported (3)"));
  gpu.Say("");
  const auto reader = OpenFake();
  REQUIRE(reader.ok());
  gpu.Say("fail nvmlDeviceGetCurrentClocksEventReasons 15\n");
  CHECK(absl::IsInternal((*reader)->Read().status()));
}

}  // namespace
}  // namespace warpsmith::cuda
