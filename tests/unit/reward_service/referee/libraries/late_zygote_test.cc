#include "reward_service/referee/libraries/late_zygote.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("a zygote that does not start is started again for the next program, and is not there meanwhile") {
  int num_starts = 0;
  LateZygote late([&]() -> absl::StatusOr<std::unique_ptr<Zygote>> {
    ++num_starts;
    return absl::UnavailableError("no memory");
  });
  CHECK(late.started() == nullptr);
  CHECK(num_starts == 0);
  CHECK(late.Get().status().message() == "no memory");
  CHECK(late.Get().status().message() == "no memory");
  CHECK(num_starts == 2);
  CHECK(late.started() == nullptr);
}

TEST_CASE("a lane without a GPU has no zygote with cuBLAS") {
  const TemporaryDirectory folder;
  CHECK(absl::IsFailedPrecondition(NativeZygoteWithBlas(folder.path(), std::nullopt)->Get().status()));
}

TEST_CASE("zygotes whose programs are not there do not start, and end no process") {
  const TemporaryDirectory folder;
  const auto native = NativeZygoteWithBlas(folder.path(), GpuAccess{.uuid = "GPU-none"});
  CHECK_FALSE(native->Get().ok());
  CHECK(native->started() == nullptr);
  const auto python = PythonZygoteWithProducts(folder.path() / "python", folder.path(), {}, 1, std::nullopt);
  CHECK(python->started() == nullptr);
  CHECK_FALSE(python->Get().ok());
  CHECK(python->started() == nullptr);
}

}  // namespace
}  // namespace warpsmith
