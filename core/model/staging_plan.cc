#include "core/model/staging_plan.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/kernels/bfloat16.h"

namespace warpsmith {
namespace {

// A run of a tensor at its place among all buffers.
struct PlacedRun {
  int tensor;
  int64_t hf_offset;
  int64_t offset;
  int64_t length;
};

std::vector<PlacedRun> RunsInOrder(const ParameterLayout& layout,
                                   const std::vector<HfTensorLayout>& tensors) {
  const std::vector<int64_t> begins = BufferOffsets(layout);
  std::vector<PlacedRun> runs;
  for (int tensor = 0; tensor < std::ssize(tensors); ++tensor) {
    const HfTensorLayout& placed = tensors[tensor];
    for (const CopyRun& run : placed.runs) {
      runs.push_back({tensor, run.hf_offset, begins[placed.buffer] + run.buffer_offset, run.length});
    }
  }
  std::sort(runs.begin(), runs.end(),
            [](const PlacedRun& a, const PlacedRun& b) { return a.offset < b.offset; });
  return runs;
}

void RoundHalves(const std::byte* halves, int64_t count, uint16_t* bits) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, halves + i * 2, 2);
    bits[i] = Bfloat16Bits(FloatOfFloat16(half));
  }
}

// The values of one of the types that models have.
void Widen(const std::byte* from, TensorType type, int64_t count, float* to) {
  if (type == TensorType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + i * 2, 2);
    to[i] = type == TensorType::kF16 ? FloatOfFloat16(bits) : FloatOfBfloat16(bits);
  }
}

void FillPiece(const StagingPiece& piece, const TensorView& view, float* to) {
  const TensorType type = view.info.type;
  WS_CHECK(type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16)
      << view.info.name;
  Widen(view.bytes.data() + piece.hf_offset * TensorTypeBytes(type), type, piece.length, to);
}

void FillPiece(const StagingPiece& piece, const TensorView& view, uint16_t* to) {
  const int64_t element = TensorTypeBytes(view.info.type);
  const std::byte* const from = view.bytes.data() + piece.hf_offset * element;
  switch (view.info.type) {
    case TensorType::kF32:
      return RoundFloats(from, piece.length, to);
    case TensorType::kF16:
      return RoundHalves(from, piece.length, to);
    default:
      WS_CHECK(view.info.type == TensorType::kBF16) << view.info.name;
      std::memcpy(to, from, piece.length * sizeof(uint16_t));
  }
}

template <typename Element>
void FillElements(const StagingChunk& chunk, const std::vector<const TensorView*>& views, Element* staging) {
  int64_t filled = 0;
  for (const StagingPiece& piece : chunk.pieces) {
    std::fill(staging + filled, staging + piece.chunk_offset, Element{0});
    FillPiece(piece, *views[piece.tensor], staging + piece.chunk_offset);
    filled = piece.chunk_offset + piece.length;
  }
  std::fill(staging + filled, staging + chunk.length, Element{0});
}

}  // namespace

std::vector<int64_t> BufferOffsets(const ParameterLayout& layout) {
  std::vector<int64_t> offsets = {0};
  for (const ParameterBuffer& buffer : layout.buffers()) offsets.push_back(offsets.back() + buffer.size);
  return offsets;
}

std::vector<StagingChunk> CutIntoChunks(const ParameterLayout& layout, int64_t elements_max) {
  const std::vector<int64_t> begins = BufferOffsets(layout);
  std::vector<StagingChunk> chunks;
  for (size_t buffer = 0; buffer + 1 < begins.size(); ++buffer) {
    for (int64_t at = begins[buffer]; at < begins[buffer + 1]; at += elements_max) {
      chunks.push_back({at, std::min(elements_max, begins[buffer + 1] - at), {}});
    }
  }
  return chunks;
}

std::vector<StagingChunk> PlanStaging(const ParameterLayout& layout,
                                      const std::vector<HfTensorLayout>& tensors, int64_t elements_max) {
  std::vector<StagingChunk> chunks = CutIntoChunks(layout, elements_max);
  size_t first = 0;  // chunk that the run begins in
  for (const PlacedRun& run : RunsInOrder(layout, tensors)) {
    while (run.offset >= chunks[first].offset + chunks[first].length) ++first;
    const int64_t end = run.offset + run.length;
    for (size_t i = first; i < chunks.size() && chunks[i].offset < end; ++i) {
      StagingChunk& chunk = chunks[i];
      const int64_t begin = std::max(run.offset, chunk.offset);
      const int64_t length = std::min(end, chunk.offset + chunk.length) - begin;
      chunk.pieces.push_back({run.tensor, run.hf_offset + begin - run.offset, begin - chunk.offset, length});
    }
  }
  return chunks;
}

void FillChunk(const StagingChunk& chunk, const std::vector<const TensorView*>& views, uint16_t* staging) {
  FillElements(chunk, views, staging);
}

void FillChunk(const StagingChunk& chunk, const std::vector<const TensorView*>& views, float* staging) {
  FillElements(chunk, views, staging);
}

void RoundFloats(const std::byte* floats, int64_t count, uint16_t* bits) {
  for (int64_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, floats + i * sizeof(float), sizeof(float));
    bits[i] = Bfloat16Bits(value);
  }
}

int TensorAt(const ParameterLayout& layout, int64_t offset) {
  for (const PlacedRun& run : RunsInOrder(layout, layout.hf_tensors())) {
    if (offset >= run.offset && offset < run.offset + run.length) return run.tensor;
  }
  return -1;
}

}  // namespace warpsmith
