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

bool HoldsWeights(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

// One value, which needs no alignment.
template <TensorType kType>
float Widened(const std::byte* from) {
  if constexpr (kType == TensorType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return kType == TensorType::kF16 ? FloatOfFloat16(bits) : FloatOfBfloat16(bits);
}

template <TensorType kType>
inline constexpr int64_t kBytesOf = kType == TensorType::kF32 ? 4 : 2;

template <TensorType kType>
void Widen(const std::byte* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = Widened<kType>(from + i * kBytesOf<kType>);
}

template <TensorType kType>
void Round(const std::byte* from, int64_t count, TensorType type, uint16_t* to) {
  if (type == TensorType::kF16) {
    for (int64_t i = 0; i < count; ++i) to[i] = Float16Bits(Widened<kType>(from + i * kBytesOf<kType>));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = Bfloat16Bits(Widened<kType>(from + i * kBytesOf<kType>));
  }
}

const std::byte* BytesOf(const StagingPiece& piece, const TensorView& view) {
  WS_CHECK(HoldsWeights(view.info.type)) << view.info.name;
  return view.bytes.data() + piece.hf_offset * TensorTypeBytes(view.info.type);
}

void FillPiece(const StagingPiece& piece, const TensorView& view, float* to) {
  const std::byte* const from = BytesOf(piece, view);
  switch (view.info.type) {
    case TensorType::kF16:
      return Widen<TensorType::kF16>(from, piece.length, to);
    case TensorType::kBF16:
      return Widen<TensorType::kBF16>(from, piece.length, to);
    default:
      std::memcpy(to, from, piece.length * sizeof(float));
  }
}

void FillPiece(const StagingPiece& piece, const TensorView& view, TensorType type, uint16_t* to) {
  const std::byte* const from = BytesOf(piece, view);
  if (view.info.type == type) {
    std::memcpy(to, from, piece.length * sizeof(uint16_t));
    return;
  }
  switch (view.info.type) {
    case TensorType::kF16:
      return Round<TensorType::kF16>(from, piece.length, type, to);
    case TensorType::kBF16:
      return Round<TensorType::kBF16>(from, piece.length, type, to);
    default:
      return Round<TensorType::kF32>(from, piece.length, type, to);
  }
}

// `fill` fills one piece.
template <typename Element, typename Fill>
void FillElements(const StagingChunk& chunk, const std::vector<const TensorView*>& views, Element* staging,
                  Fill fill) {
  int64_t filled = 0;
  for (const StagingPiece& piece : chunk.pieces) {
    std::fill(staging + filled, staging + piece.chunk_offset, Element{0});
    fill(piece, *views[piece.tensor], staging + piece.chunk_offset);
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

void FillChunk(const StagingChunk& chunk, const std::vector<const TensorView*>& views, TensorType type,
               uint16_t* staging) {
  WS_CHECK(type == TensorType::kBF16 || type == TensorType::kF16) << TensorTypeName(type);
  FillElements(chunk, views, staging,
               [type](const StagingPiece& piece, const TensorView& view, uint16_t* to) {
                 FillPiece(piece, view, type, to);
               });
}

void FillChunk(const StagingChunk& chunk, const std::vector<const TensorView*>& views, float* staging) {
  FillElements(chunk, views, staging, [](const StagingPiece& piece, const TensorView& view, float* to) {
    FillPiece(piece, view, to);
  });
}

int TensorAt(const ParameterLayout& layout, int64_t offset) {
  for (const PlacedRun& run : RunsInOrder(layout, layout.hf_tensors())) {
    if (offset >= run.offset && offset < run.offset + run.length) return run.tensor;
  }
  return -1;
}

}  // namespace warpsmith
