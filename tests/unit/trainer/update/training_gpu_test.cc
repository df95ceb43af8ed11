#include "trainer/update/training_gpu.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("no GPU is opened where the configuration names none, and none for several ranks") {
  CHECK(*TrainingGpu::Open(std::nullopt, /*num_ranks=*/2) == nullptr);
  const absl::Status status = TrainingGpu::Open(0, /*num_ranks=*/2).status();
  CHECK(absl::IsUnimplemented(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("WORLD_SIZE is 2"));
}

TEST_CASE("while the trainer has its turn no other process has the GPU, and after it one may") {
  const TemporaryDirectory folder;
  const auto lease = [&] { return DeviceLease::Open("GPU-1", folder.path()).value(); };
  TrainingGpu gpu({.index = 1, .name = "a GPU"}, lease());
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
  TrainingGpu gpu({.name = "a GPU"}, std::nullopt);
  const absl::StatusOr<TrainingGpu::Turn> turn = gpu.Take();
  REQUIRE(turn.ok());
  CHECK_FALSE(turn->has_value());
}

}  // namespace
}  // namespace warpsmith
