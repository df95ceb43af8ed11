#include "reward_service/referee/process/cuda_error_text.h"

#include "reward_service/referee/process/fault.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("what a launch is likely to give is told by CUDA's name for it, and other numbers are not") {
  CHECK_THAT(CudaErrorText(9), Catch::StartsWith(", which is cudaErrorInvalidConfiguration: "));
  CHECK_THAT(CudaErrorText(209), Catch::Contains("another architecture"));
  // It is judged once more alone, where others may have had the memory.
  CHECK(SaysWantOfMemory("run() returned 2" + CudaErrorText(2)));
  CHECK_FALSE(SaysWantOfMemory("run() returned 700" + CudaErrorText(700)));
  for (const int64_t other : {-1, 0, 7, 77, 1 << 30}) CHECK(CudaErrorText(other).empty());
}

}  // namespace
}  // namespace warpsmith
