#include "reward_service/referee/process/fault.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("words about memory that was wanting are known, whoever says them") {
  for (const char* words :
       {"OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "std::bad_alloc",
        "on inputs of other shapes or strides: run() returned 2"})
    CHECK(SaysWantOfMemory(words));
  for (const char* words : {"", "an illegal memory access was encountered", "run() returned 22",
                            "run() returned 1", "4 of 4 elements wrong; output 0"})
    CHECK_FALSE(SaysWantOfMemory(words));
}

}  // namespace
}  // namespace warpsmith
