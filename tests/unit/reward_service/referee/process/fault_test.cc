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

TEST_CASE("words about a GPU that fails are known, and none that a program's own fault is told by") {
  for (const char* words : {"AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
                            "run() returned 46", "on the GPU: cuCtxSynchronize: CUDA_ERROR_UNKNOWN",
                            "run() returned 999", "cudaErrorECCUncorrectable"})
    CHECK(SaysDeviceFailed(words));
  for (const char* words :
       {"run() returned 9", "run() returned 700", "run() returned 1046", "unknown error code 7",
        "AcceleratorError: CUDA error: unspecified launch failure", "misaligned address"})
    CHECK_FALSE(SaysDeviceFailed(words));
}

}  // namespace
}  // namespace warpsmith
