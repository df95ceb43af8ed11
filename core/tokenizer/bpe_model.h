// Byte pair encoding of one piece of text: the "model" of tokenizer.json (Sennrich et al. 2016, over bytes).
#ifndef WARPSMITH_CORE_TOKENIZER_BPE_MODEL_H_
#define WARPSMITH_CORE_TOKENIZER_BPE_MODEL_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// Two neighbouring tokens become `product`; the lowest rank first.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t product = 0;
};

// What a whole piece that is itself a token becomes: that token at once, or what the merges make of it.
enum class WholePieces { kByMerges, kAtOnce };

// Immutable, so any number of threads may encode at once.
class BpeModel {
 public:
  // `token_ids` by the bytes of a token; `merges` by rank. INVALID_ARGUMENT if one of the 256 bytes is no
  // token.
  static absl::StatusOr<BpeModel> Create(absl::flat_hash_map<std::string, int32_t> token_ids,
                                         const std::vector<BpeMerge>& merges, WholePieces whole_pieces);

  // Appends the tokens of `piece` to `ids`. Of equal ranks the leftmost is merged first. O(n log n) for n
  // bytes.
  void Encode(std::string_view piece, std::vector<int32_t>* ids) const;

 private:
  struct Rule {
    int32_t rank = 0;
    int32_t product = 0;
  };

  // One token of the piece under work, in a doubly linked list.
  struct Symbol {
    int32_t id = 0;
    int32_t previous = -1;
    int32_t next = -1;
  };

  // A pair that may be merged: out of date once either side has changed.
  struct Candidate {
    int32_t rank = 0;
    int32_t position = 0;
    int32_t left = 0;
    int32_t right = 0;
    int32_t product = 0;
  };

  BpeModel() = default;
  const Rule* FindRule(int32_t left, int32_t right) const;
  void AddCandidate(const std::vector<Symbol>& symbols, int32_t position, std::vector<Candidate>* heap) const;
  void Merge(std::vector<Symbol>* symbols) const;

  absl::flat_hash_map<std::string, int32_t> token_ids_;
  absl::flat_hash_map<uint64_t, Rule> rules_;  // by left << 32 | right
  std::array<int32_t, 256> byte_ids_{};
  WholePieces whole_pieces_ = WholePieces::kByMerges;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_BPE_MODEL_H_
