#include "core/model/cuda_device.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/host_gpu_faults.h"

namespace warpsmith {
namespace {

TEST_CASE("a GPU is told by its name and its UUID as nvidia-smi writes it") {
  const absl::StatusOr<CudaDevice> device = UseCudaDevice(0, "trainer.device");
  REQUIRE(device.ok());
  CHECK(device->name == "a GPU made of the host");
  CHECK(device->uuid == "GPU-00000000-0000-0000-0000-00000000002a");
}

TEST_CASE("a GPU that is not there, and a driver that is too old, are refused with the way out") {
  CHECK(UseCudaDevice(3, "trainer.device").status() ==
        absl::FailedPreconditionError(
            "trainer.device: there is no GPU 3, for there are 1: name one from 0 on"));
  HostFaults().driver_is_old = true;
  const absl::Status old = UseCudaDevice(0, "trainer.device").status();
  HostFaults().driver_is_old = false;
  CHECK_THAT(std::string(old.message()),
             Catch::StartsWith("trainer.device: ") && Catch::Contains("update its driver"));
}

}  // namespace
}  // namespace warpsmith
