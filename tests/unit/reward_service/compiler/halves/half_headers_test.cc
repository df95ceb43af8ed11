#include "reward_service/compiler/halves/half_headers.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a header goes to the half that can read it, and one that only nvcc is known to read to none") {
  CHECK(FindHalfHeader("vector")->is_hosts);
  CHECK_FALSE(FindHalfHeader("vector")->is_devices);
  CHECK(FindHalfHeader("mma.h")->is_devices);
  CHECK_FALSE(FindHalfHeader("mma.h")->is_hosts);
  CHECK((FindHalfHeader("cuda_fp16.h")->is_hosts && FindHalfHeader("cuda_fp16.h")->is_devices));
  CHECK(FindHalfHeader("cstdint")->device_line == "#include \"native_stdint.h\"");
  CHECK(FindHalfHeader("float.h")->device_line == "#include \"native_float.h\"");
  for (const char* other :
       {"", "cub/cub.cuh", "cublasLt.h", "cooperative_groups.h", "/etc/passwd", "cuda_fp16"})
    CHECK_FALSE(FindHalfHeader(other));
}

}  // namespace
}  // namespace warpsmith
