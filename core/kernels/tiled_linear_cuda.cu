#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "core/kernels/tensor_map_cuda.h"
#include "core/kernels/tiled_linear.cuh"
#include "core/kernels/tiled_linear_cuda.h"

namespace warpsmith {
namespace {

template <typename E>
struct TiledLaunch {
  const LinearShape& shape;
  int64_t rows;
  const LinearOperandsOf<E>& operands;
  TilePlan plan;
  cudaStream_t stream;
  KernelStart start;
};

struct TiledMaps {
  CUtensorMap weights, x, residual, y;
};

template <typename T, typename E>
cudaError_t EncodeOperands(const TiledLaunch<E>& launch, TiledMaps& maps) {
  const LinearShape& shape = launch.shape;
  if (T::kRows / launch.plan.cluster.columns % 8 != 0) return cudaErrorInvalidValue;
  const int weight_rows = T::kColumns / launch.plan.cluster.rows;
  const E* const weight = launch.operands.weight;
  const cudaError_t error =
      T::kOutput == OutputKind::kSwiGlu
          ? EncodeGatedMap(weight, shape.columns, shape.depth, weight_rows, &maps.weights)
          : EncodeMap(weight, shape.columns, shape.depth, weight_rows, kDepth, &maps.weights);
  if (error != cudaSuccess) return error;
  return EncodeMap(launch.operands.x, launch.rows, shape.depth, T::kRows / launch.plan.cluster.columns,
                   kDepth, &maps.x);
}

template <typename T, typename E>
cudaError_t EncodeResults(const TiledLaunch<E>& launch, TiledMaps& maps) {
  if (T::kOutput == OutputKind::kFloat32) return cudaSuccess;  // written without a map
  const int64_t columns = launch.shape.columns / (T::kOutput == OutputKind::kSwiGlu ? 2 : 1);
  const auto encode = [&](const void* matrix, CUtensorMap& map) {
    return EncodeMap(static_cast<const E*>(matrix), launch.rows, columns, T::kPieceRows, T::kResultColumns,
                     &map);
  };
  const cudaError_t error = encode(launch.operands.y, maps.y);
  if (error != cudaSuccess || launch.operands.residual == nullptr) return error;
  return encode(launch.operands.residual, maps.residual);
}

template <typename T, typename E>
cudaError_t Launch(const TiledLaunch<E>& launch) {
  int device = 0, multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const auto kernel = TiledLinearKernel<T>;
  // Of each device, so at each launch.
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kBytes);
  if (error != cudaSuccess) return error;
  TiledMaps maps = {};
  error = EncodeOperands<T>(launch, maps);
  if (error == cudaSuccess) error = EncodeResults<T>(launch, maps);
  if (error != cudaSuccess) return error;

  const LinearShape& shape = launch.shape;
  const TiledProblem problem = {OrderOf(launch.plan, launch.rows, shape.columns),
                                launch.plan.cluster,
                                static_cast<int>(Quotient(shape.depth, kDepth)),
                                CutOf(shape).parts,
                                {static_cast<int>(launch.rows), static_cast<int>(shape.columns),
                                 launch.operands.bias, launch.operands.residual, launch.operands.y}};
  const int cluster_blocks = launch.plan.cluster.size();
  const int clusters = std::min(multiprocessors / cluster_blocks, problem.order.size());
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(cluster_blocks), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(clusters * cluster_blocks));
  config.blockDim = T::kThreads;
  config.dynamicSmemBytes = T::kBytes;
  config.stream = launch.stream;
  config.attrs = attributes;
  config.numAttrs = launch.start == KernelStart::kBesideFormer ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, maps.weights, maps.x, maps.residual, maps.y, problem);
}

template <int kRows, int kColumns, FirstOperand kFirst, int kTurns, bool kParts, OutputKind kKind, typename E>
cudaError_t LaunchTile(const TiledLaunch<E>& launch) {
  if constexpr (IsBuilt({kRows, kColumns, {1, 1}, kFirst, kTurns}, kParts, kKind)) {
    return Launch<TiledShape<E, kRows, kColumns, kFirst, kTurns, kParts, kKind>>(launch);
  } else {
    return cudaErrorInvalidValue;
  }
}

template <int kColumns, bool kParts, OutputKind kKind, typename E>
cudaError_t LaunchOfColumns(const TiledLaunch<E>& launch) {
  const auto run = [&](auto rows) {
    return LaunchTile<decltype(rows)::value, kColumns, FirstOperand::kWeights, 1, kParts, kKind>(launch);
  };
  switch (launch.plan.tile_rows) {
    case 48:
      return run(std::integral_constant<int, 48>());
    case 64:
      return run(std::integral_constant<int, 64>());
    case 96:
      return run(std::integral_constant<int, 96>());
    case 104:
      return run(std::integral_constant<int, 104>());
    case 112:
      return run(std::integral_constant<int, 112>());
    case 128:
      return run(std::integral_constant<int, 128>());
    case 160:
      return run(std::integral_constant<int, 160>());
    case 176:
      return run(std::integral_constant<int, 176>());
    case 208:
      return run(std::integral_constant<int, 208>());
    case 256:
      return run(std::integral_constant<int, 256>());
    default:
      return cudaErrorInvalidValue;
  }
}

// Of kOtherTiles, those from kIndex on.
template <bool kParts, OutputKind kKind, size_t kIndex = 0, typename E>
cudaError_t LaunchOther(const TiledLaunch<E>& launch) {
  if constexpr (kIndex == std::size(kOtherTiles)) {
    return cudaErrorInvalidValue;
  } else {
    constexpr TilePlan kTile = kOtherTiles[kIndex];
    const TilePlan& plan = launch.plan;
    if (plan.tile_rows == kTile.tile_rows && plan.tile_columns == kTile.tile_columns &&
        plan.first == kTile.first && plan.turns == kTile.turns) {
      return LaunchTile<kTile.tile_rows, kTile.tile_columns, kTile.first, kTile.turns, kParts, kKind>(launch);
    }
    return LaunchOther<kParts, kKind, kIndex + 1>(launch);
  }
}

template <bool kParts, OutputKind kKind, typename E>
cudaError_t LaunchOfPlan(const TiledLaunch<E>& launch) {
  if (launch.plan.first == FirstOperand::kX || launch.plan.turns != 1)
    return LaunchOther<kParts, kKind>(launch);
  switch (launch.plan.tile_columns) {
    case 64:
      return LaunchOfColumns<64, kParts, kKind>(launch);
    case 128:
      return LaunchOfColumns<128, kParts, kKind>(launch);
    case 192:
      return LaunchOfColumns<192, kParts, kKind>(launch);
    default:
      return cudaErrorInvalidValue;
  }
}

template <OutputKind kKind, typename E>
cudaError_t LaunchOfKind(const TiledLaunch<E>& launch) {
  return CutOf(launch.shape).parts > 1 ? LaunchOfPlan<true, kKind>(launch)
                                       : LaunchOfPlan<false, kKind>(launch);
}

}  // namespace

template <typename E>
cudaError_t LaunchTiledLinear(const LinearShape& shape, int64_t rows, const LinearOperandsOf<E>& operands,
                              OutputKind kind, const TilePlan& plan, cudaStream_t stream, KernelStart start) {
  const TiledLaunch<E> launch = {shape, rows, operands, plan, stream, start};
  if (kind == OutputKind::kSwiGlu) return LaunchOfKind<OutputKind::kSwiGlu>(launch);
  if (kind == OutputKind::kFloat32) return LaunchOfKind<OutputKind::kFloat32>(launch);
  return LaunchOfKind<OutputKind::kStored>(launch);
}

template cudaError_t LaunchTiledLinear(const LinearShape&, int64_t, const LinearOperandsOf<__nv_bfloat16>&,
                                       OutputKind, const TilePlan&, cudaStream_t, KernelStart);
template cudaError_t LaunchTiledLinear(const LinearShape&, int64_t, const LinearOperandsOf<__half>&,
                                       OutputKind, const TilePlan&, cudaStream_t, KernelStart);

}  // namespace warpsmith
