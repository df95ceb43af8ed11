#include "rollout_workers/placement.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a device is the CPU, the first GPU or one by number") {
  CHECK_FALSE(ParsePlacement("cpu").value().has_value());
  CHECK(ParsePlacement("cuda").value()->device == 0);
  CHECK(ParsePlacement("cuda:0").value()->device == 0);
  CHECK(ParsePlacement("cuda:7").value()->device == 7);
}

TEST_CASE("a text that names no device is refused with what may be given") {
  for (const char* const text :
       {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "cuda: 1", "cuda:64", "cpu:2"}) {
    const absl::Status status = ParsePlacement(text).status();
    CAPTURE(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("give cpu, cuda or cuda:N"));
  }
}

}  // namespace warpsmith
