#include "core/kernels/tensor_map_cuda.h"

#include <array>
#include <atomic>

#include "core/kernels/swiglu.h"

namespace warpsmith {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// The driver's function, null where the driver has none. Only what was found is kept, for a process may look before its
// driver is there.
EncodeTiled FindEncodeTiled() {
  static std::atomic<EncodeTiled> found = nullptr;
  if (const EncodeTiled encode = found.load()) return encode;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  constexpr unsigned kVersion = 12000;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kVersion, cudaEnableDefault,
                                       &result) != cudaSuccess) {
    return nullptr;
  }
  found = reinterpret_cast<EncodeTiled>(function);
  return found;
}

template <typename T>
constexpr CUtensorMapDataType kElementType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
template <>
constexpr CUtensorMapDataType kElementType<__half> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

template <size_t kDimensions, typename T>
cudaError_t Encode(const T* matrix, const std::array<cuuint64_t, kDimensions>& sizes,
                   const std::array<cuuint64_t, kDimensions - 1>& strides,
                   const std::array<cuuint32_t, kDimensions>& tile, CUtensorMap* map) {
  const EncodeTiled encode = FindEncodeTiled();
  if (encode == nullptr) return cudaErrorInsufficientDriver;
  std::array<cuuint32_t, kDimensions> steps;
  steps.fill(1);
  const CUtensorMapSwizzle swizzle = tile[0] == 32 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
  const CUresult result =
      encode(map, kElementType<T>, kDimensions, const_cast<T*>(matrix), sizes.data(), strides.data(),
             tile.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

template <typename T>
cudaError_t EncodeMap(const T* matrix, int64_t rows, int64_t columns, int tile_rows, int tile_columns,
                      CUtensorMap* map) {
  const auto columns_size = static_cast<cuuint64_t>(columns);
  return Encode<2>(matrix, {columns_size, static_cast<cuuint64_t>(rows)}, {columns_size * 2},
                   {static_cast<cuuint32_t>(tile_columns), static_cast<cuuint32_t>(tile_rows)}, map);
}

template <typename T>
cudaError_t EncodeTilesMap(const T* matrix, int64_t rows, int64_t columns, int tile_rows, int num_tiles,
                           CUtensorMap* map) {
  constexpr cuuint64_t kColumns = 64;
  const auto columns_size = static_cast<cuuint64_t>(columns);
  return Encode<3>(matrix, {kColumns, static_cast<cuuint64_t>(rows), columns_size / kColumns},
                   {columns_size * 2, kColumns * 2},
                   {static_cast<cuuint32_t>(kColumns), static_cast<cuuint32_t>(tile_rows),
                    static_cast<cuuint32_t>(num_tiles)},
                   map);
}

template <typename T>
cudaError_t EncodeGatedMap(const T* matrix, int64_t rows, int64_t depth, int tile_rows, CUtensorMap* map) {
  constexpr cuuint64_t kRows = 8, kBlock = kSwiGluBlock, kPair = 2 * kBlock;
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(depth) * 2;
  return Encode<5>(
      matrix,
      {static_cast<cuuint64_t>(depth), kRows, 2, kBlock / kRows, static_cast<cuuint64_t>(rows) / kPair},
      {row_bytes, kBlock * row_bytes, kRows * row_bytes, kPair * row_bytes},
      {64, kRows, 2, kBlock / kRows, static_cast<cuuint32_t>(tile_rows) / static_cast<cuuint32_t>(kPair)},
      map);
}

template cudaError_t EncodeMap(const __nv_bfloat16*, int64_t, int64_t, int, int, CUtensorMap*);
template cudaError_t EncodeMap(const __half*, int64_t, int64_t, int, int, CUtensorMap*);
template cudaError_t EncodeTilesMap(const __nv_bfloat16*, int64_t, int64_t, int, int, CUtensorMap*);
template cudaError_t EncodeTilesMap(const __half*, int64_t, int64_t, int, int, CUtensorMap*);
template cudaError_t EncodeGatedMap(const __nv_bfloat16*, int64_t, int64_t, int, CUtensorMap*);
template cudaError_t EncodeGatedMap(const __half*, int64_t, int64_t, int, CUtensorMap*);

}  // namespace warpsmith
