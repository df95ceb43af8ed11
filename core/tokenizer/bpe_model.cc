#include "core/tokenizer/bpe_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"

namespace warpsmith {
namespace {

constexpr int32_t kMerged = -1;  // id of a symbol that its left neighbour has taken in

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

absl::StatusOr<BpeModel> BpeModel::Create(absl::flat_hash_map<std::string, int32_t> token_ids,
                                          const std::vector<BpeMerge>& merges, WholePieces whole_pieces) {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = token_ids.find(std::string(1, static_cast<char>(byte)));
    if (found == token_ids.end()) {
      return absl::InvalidArgumentError(absl::StrCat("vocabulary: byte ", byte, " is no token"));
    }
    model.byte_ids_[byte] = found->second;
  }
  model.rules_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    // A pair given twice counts with its last rank, as in the `tokenizers` package.
    model.rules_[PairKey(merges[rank].left, merges[rank].right)] = {static_cast<int32_t>(rank),
                                                                    merges[rank].product};
  }
  model.token_ids_ = std::move(token_ids);
  model.whole_pieces_ = whole_pieces;
  return model;
}

void BpeModel::Encode(std::string_view piece, std::vector<int32_t>* ids) const {
  if (piece.empty()) return;
  if (whole_pieces_ == WholePieces::kAtOnce) {
    if (const auto found = token_ids_.find(AbslView(piece)); found != token_ids_.end()) {
      ids->push_back(found->second);
      return;
    }
  }
  std::vector<Symbol> symbols(piece.size());
  for (size_t i = 0; i < piece.size(); ++i) {
    const auto position = static_cast<int32_t>(i);
    symbols[i] = {.id = byte_ids_[static_cast<unsigned char>(piece[i])],
                  .previous = position - 1,
                  .next = position + 1};
  }
  symbols.back().next = -1;
  Merge(&symbols);
  for (int32_t position = 0; position >= 0; position = symbols[position].next)
    ids->push_back(symbols[position].id);
}

const BpeModel::Rule* BpeModel::FindRule(int32_t left, int32_t right) const {
  const auto found = rules_.find(PairKey(left, right));
  return found == rules_.end() ? nullptr : &found->second;
}

void BpeModel::AddCandidate(const std::vector<Symbol>& symbols, int32_t position,
                            std::vector<Candidate>* heap) const {
  if (position < 0 || symbols[position].next < 0) return;
  const int32_t left = symbols[position].id, right = symbols[symbols[position].next].id;
  if (const Rule* rule = FindRule(left, right)) {
    heap->push_back({rule->rank, position, left, right, rule->product});
  }
}

void BpeModel::Merge(std::vector<Symbol>* symbols) const {
  const auto comes_later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  std::vector<Candidate> heap;
  heap.reserve(2 * symbols->size());
  for (size_t i = 0; i + 1 < symbols->size(); ++i) AddCandidate(*symbols, static_cast<int32_t>(i), &heap);
  std::make_heap(heap.begin(), heap.end(), comes_later);

  const auto add = [&](int32_t position) {
    const size_t size = heap.size();
    AddCandidate(*symbols, position, &heap);
    if (heap.size() > size) std::push_heap(heap.begin(), heap.end(), comes_later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = (*symbols)[best.position];
    if (left.id != best.left || left.next < 0 || (*symbols)[left.next].id != best.right) continue;
    Symbol& right = (*symbols)[left.next];
    left.id = best.product;
    left.next = right.next;
    right.id = kMerged;
    if (left.next >= 0) (*symbols)[left.next].previous = best.position;
    add(left.previous);
    add(best.position);
  }
}

}  // namespace warpsmith
