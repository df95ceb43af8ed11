#include <cuda_bf16.h>

#include <algorithm>

#include "core/kernels/tensor_map_cuda.h"
#include "core/kernels/tiled_linear.cuh"
#include "core/kernels/tiled_linear_cuda.h"

namespace warpsmith {
namespace {

struct TiledLaunch {
  const LinearShape& shape;
  int64_t rows;
  const LinearOperands& operands;
  TilePlan plan;
  cudaStream_t stream;
  KernelStart start;
};

struct TiledMaps {
  CUtensorMap weights, x, residual, y;
};

template <typename T>
bool EncodeMaps(const TiledLaunch& launch, TiledMaps& maps) {
  const LinearShape& shape = launch.shape;
  const LinearOperands& operands = launch.operands;
  constexpr bool kGated = T::kOutput == OutputKind::kSwiGlu;
  const int weight_rows = T::kColumns / launch.plan.cluster.rows;
  const bool has_weights =
      kGated ? EncodeGatedMap(operands.weight, shape.columns, shape.depth, weight_rows, &maps.weights)
             : EncodeMap(operands.weight, shape.columns, shape.depth, weight_rows, kDepth, &maps.weights);
  if (!has_weights || !EncodeMap(operands.x, launch.rows, shape.depth, T::kRows / launch.plan.cluster.columns,
                                 kDepth, &maps.x)) {
    return false;
  }
  if (T::kOutput == OutputKind::kFloat32) return true;
  const auto encode_result = [&](const void* matrix, CUtensorMap& map) {
    return EncodeMap(static_cast<const __nv_bfloat16*>(matrix), launch.rows,
                     kGated ? shape.columns / 2 : shape.columns, T::kChunkRows, T::kResultColumns, &map);
  };
  return encode_result(operands.y, maps.y) &&
         (operands.residual == nullptr || encode_result(operands.residual, maps.residual));
}

template <typename T>
cudaError_t Launch(const TiledLaunch& launch) {
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
  if (!EncodeMaps<T>(launch, maps)) return cudaErrorInvalidValue;

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

template <bool kParts, OutputKind kKind>
cudaError_t LaunchOfPlan(const TiledLaunch& launch) {
  switch (launch.plan.tile_columns * 1000 + launch.plan.tile_rows) {
    case 64064:
      return Launch<TiledShape<64, 64, kParts, kKind>>(launch);
    case 64096:
      return Launch<TiledShape<96, 64, kParts, kKind>>(launch);
    case 64128:
      return Launch<TiledShape<128, 64, kParts, kKind>>(launch);
    case 128064:
      return Launch<TiledShape<64, 128, kParts, kKind>>(launch);
    case 128096:
      return Launch<TiledShape<96, 128, kParts, kKind>>(launch);
    case 128112:
      return Launch<TiledShape<112, 128, kParts, kKind>>(launch);
    case 128128:
      return Launch<TiledShape<128, 128, kParts, kKind>>(launch);
    case 128160:
      return Launch<TiledShape<160, 128, kParts, kKind>>(launch);
    case 128176:
      return Launch<TiledShape<176, 128, kParts, kKind>>(launch);
    case 128208:
      if constexpr (!kParts) return Launch<TiledShape<208, 128, kParts, kKind>>(launch);
      break;
    case 128256:
      if constexpr (!kParts) return Launch<TiledShape<256, 128, kParts, kKind>>(launch);
      break;
    default:
      break;
  }
  return cudaErrorInvalidValue;
}

template <OutputKind kKind>
cudaError_t LaunchOfKind(const TiledLaunch& launch) {
  return CutOf(launch.shape).parts > 1 ? LaunchOfPlan<true, kKind>(launch)
                                       : LaunchOfPlan<false, kKind>(launch);
}

}  // namespace

cudaError_t LaunchTiledLinear(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                              LinearGate gate, const TilePlan& plan, cudaStream_t stream, KernelStart start) {
  const TiledLaunch launch = {shape, rows, operands, plan, stream, start};
  if (gate == LinearGate::kSwiGlu) return LaunchOfKind<OutputKind::kSwiGlu>(launch);
  if (shape.output == LinearOutput::kFloat32) return LaunchOfKind<OutputKind::kFloat32>(launch);
  return LaunchOfKind<OutputKind::kBfloat16>(launch);
}

}  // namespace warpsmith
