#include "trainer/update/training_gpu.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("a GPU that cannot be used is refused with the key and the way out") {
  // With CUDA or without, on a host with GPUs or none: there are not so many.
  const absl::Status status = TrainingGpu::Open(63).status();
  INFO(status);
  CHECK((absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)));
  CHECK_THAT(std::string(status.message()), Catch::StartsWith("trainer.device: "));
}

TEST_CASE("while the trainer has its turn no other process has the GPU, and after it one may") {
  const TemporaryDirectory folder;
  const auto lease = [&] { return DeviceLease::Open("GPU-1", folder.path()).value(); };
  TrainingGpu gpu(1, "a GPU", lease());
  DeviceLease of_referee = lease();
  {
    const absl::StatusOr<TrainingGpu::Turn> turn = gpu.Take();
    REQUIRE(turn.ok());
    CHECK(turn->has_value());
    CHECK(absl::IsDeadlineExceeded(of_referee.Take(absl::Now()).status()));
  }
  CHECK(of_referee.Take(absl::Now()).ok());
}

TEST_CASE("without a lease the trainer computes all the same") {
  TrainingGpu gpu(0, "a GPU", std::nullopt);
  const absl::StatusOr<TrainingGpu::Turn> turn = gpu.Take();
  REQUIRE(turn.ok());
  CHECK_FALSE(turn->has_value());
}

}  // namespace
}  // namespace warpsmith
