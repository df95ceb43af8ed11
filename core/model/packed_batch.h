// Sequences laid end to end without padding.
#ifndef WARPSMITH_CORE_MODEL_PACKED_BATCH_H_
#define WARPSMITH_CORE_MODEL_PACKED_BATCH_H_

#include <cstdint>
#include <vector>

namespace warpsmith {

// T tokens of B sequences. Sequence b has the tokens [cu_seqlens[b], cu_seqlens[b + 1]) and attends to itself
// only.
struct PackedBatch {
  std::vector<int64_t> tokens;     // [T], each in [0, vocab_size)
  std::vector<int64_t> positions;  // [T], usually 0, 1, ... within a sequence; below max_position_embeddings
  std::vector<int64_t> cu_seqlens = {0};  // [B + 1], from 0 to T, ascending

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }

  // Appends a sequence with the positions 0, 1, ....
  void Append(const std::vector<int64_t>& sequence_tokens);
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_PACKED_BATCH_H_
