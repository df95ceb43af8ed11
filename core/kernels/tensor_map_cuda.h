// Maps of matrices in device memory for Hopper's tensor memory accelerator.
#ifndef WARPSMITH_CORE_KERNELS_TENSOR_MAP_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TENSOR_MAP_CUDA_H_

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpsmith {

// Tiles of `tile_rows` rows by `tile_columns` of a dense [rows, columns] of T, __nv_bfloat16 or __half. What lies
// outside reads as zero and is not written. A tile's row is 64 or 128 bytes, swizzled so. `matrix` and its rows are
// aligned to 16 bytes. cudaErrorInsufficientDriver where the driver is too old for maps, cudaErrorInvalidValue for what
// it refuses.
template <typename T>
cudaError_t EncodeMap(const T* matrix, int64_t rows, int64_t columns, int tile_rows, int tile_columns,
                      CUtensorMap* map);

// `num_tiles` tiles in one copy, one behind the other, each of `tile_rows` rows by 64 columns, 128 bytes swizzled, of a
// dense [rows, columns] whose columns are a multiple of 64: three dimensions, of which the first is a column of a tile,
// the second a row and the last counts tiles.
template <typename T>
cudaError_t EncodeTilesMap(const T* matrix, int64_t rows, int64_t columns, int tile_rows, int num_tiles,
                           CUtensorMap* map);

// Tiles of `tile_rows` rows by 64 columns, 128 bytes swizzled, of gate and up in blocks (swiglu.h), a dense [rows,
// depth], in the order that puts eight rows of gate before the same eight of up: five dimensions, of which the first is
// a column and the last counts pairs of blocks. `rows` and `tile_rows` are multiples of 32.
template <typename T>
cudaError_t EncodeGatedMap(const T* matrix, int64_t rows, int64_t depth, int tile_rows, CUtensorMap* map);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TENSOR_MAP_CUDA_H_
