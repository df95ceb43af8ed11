#include "core/kernels/tensor_map_cuda.h"

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a map is made of a matrix whose rows the copy engine can reach, and of no other") {
  const Bfloat16Array matrix(std::vector<float>(64 * 64));
  CUtensorMap map;
  CHECK(EncodeMap(matrix.get(), 64, 64, 8, 64, &map) == cudaSuccess);
  CHECK(EncodeMap(matrix.get(), 3, 8, 256, 32, &map) == cudaSuccess);
  CHECK(EncodeMap(matrix.get(), 64, 12, 8, 64, &map) == cudaErrorInvalidValue);  // rows of 24 bytes
  CHECK(EncodeMap(matrix.get() + 1, 63, 64, 8, 64, &map) ==
        cudaErrorInvalidValue);  // no multiple of 16 bytes
  CHECK(EncodeMap(matrix.get(), 64, 64, 264, 64, &map) ==
        cudaErrorInvalidValue);  // more rows than a tile may have
}

TEST_CASE("a map of gate and up is made of whole pairs of blocks") {
  const Bfloat16Array matrix(std::vector<float>(64 * 64));
  CUtensorMap map;
  CHECK(EncodeGatedMap(matrix.get(), 64, 64, 32, &map) == cudaSuccess);
  CHECK(EncodeGatedMap(matrix.get(), 64, 12, 32, &map) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace warpsmith
