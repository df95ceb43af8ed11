#include "reward_service/referee/process/blas_zygote.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("a lane without a GPU has no zygote with cuBLAS") {
  const TemporaryDirectory folder;
  CHECK(absl::IsFailedPrecondition(BlasZygote(folder.path(), std::nullopt).Get().status()));
}

TEST_CASE("a zygote with cuBLAS that does not start is tried again, and ends nobody") {
  const TemporaryDirectory folder;  // without the program of jails
  BlasZygote zygote(folder.path(), GpuAccess{.uuid = "GPU-none"});
  CHECK_FALSE(zygote.Get().ok());
  CHECK_FALSE(zygote.Get().ok());
  CHECK(zygote.started() == nullptr);
}

}  // namespace
}  // namespace warpsmith
