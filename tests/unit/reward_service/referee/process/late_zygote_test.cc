#include "reward_service/referee/process/late_zygote.h"

#include "tests/support/catch.h"

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

}  // namespace
}  // namespace warpsmith
