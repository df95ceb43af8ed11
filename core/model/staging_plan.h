// How weights travel to a device: each buffer of the layout in chunks, filled on the host in the order of the buffer,
// so that every copy to the device is large however the tensors interleave.
#ifndef WARPSMITH_CORE_MODEL_STAGING_PLAN_H_
#define WARPSMITH_CORE_MODEL_STAGING_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/checkpoint/tensor_info.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// Where each buffer begins when all lie one behind the other, in elements; one more value is the sum.
std::vector<int64_t> BufferOffsets(const ParameterLayout& layout);

// `length` elements of a tensor that a chunk holds.
struct StagingPiece {
  int tensor = 0;
  int64_t hf_offset = 0;     // elements from the start of the tensor
  int64_t chunk_offset = 0;  // elements from the start of the chunk
  int64_t length = 0;
};

// `length` elements from `offset` of all buffers; what no piece covers is padding.
struct StagingChunk {
  int64_t offset = 0;
  int64_t length = 0;
  std::vector<StagingPiece> pieces;  // ascending by chunk_offset
};

// Covers every element of every buffer once, in order, in chunks of at most `elements_max`, without pieces: for weights
// that have the order of the layout already.
std::vector<StagingChunk> CutIntoChunks(const ParameterLayout& layout, int64_t elements_max);

// The same chunks with the pieces of `tensors`: those of the layout, or others that fill its buffers.
std::vector<StagingChunk> PlanStaging(const ParameterLayout& layout,
                                      const std::vector<HfTensorLayout>& tensors, int64_t elements_max);

// Writes a chunk to `staging` as `type`, BF16 or F16, padding as 0. `views` are the tensors that PlanStaging was given,
// of types F32, BF16 and F16: those of `type` are copied, others rounded to the nearest, ties to even.
void FillChunk(const StagingChunk& chunk, const std::vector<const TensorView*>& views, TensorType type,
               uint16_t* staging);
// Likewise as float32, which has all their values.
void FillChunk(const StagingChunk& chunk, const std::vector<const TensorView*>& views, float* staging);

// Index into layout.hf_tensors() of the tensor that element `offset` of all buffers belongs to; -1: padding.
int TensorAt(const ParameterLayout& layout, int64_t offset);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_STAGING_PLAN_H_
