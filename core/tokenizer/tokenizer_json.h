// Reads the format of the `tokenizers` package, as far as byte-level BPE uses it.
#ifndef WARPSMITH_CORE_TOKENIZER_TOKENIZER_JSON_H_
#define WARPSMITH_CORE_TOKENIZER_TOKENIZER_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/pre_tokenizer.h"

namespace warpsmith {

enum class Normalization { kNone, kNfc };

// What a tokenizer.json says.
struct TokenizerSpec {
  absl::flat_hash_map<std::string, int32_t> token_ids;  // of the model, by the bytes of the token
  std::vector<std::string> token_bytes;  // by id, added tokens included; empty for an id without token
  std::vector<BpeMerge> merges;          // by rank
  WholePieces whole_pieces = WholePieces::kByMerges;
  std::vector<AddedToken> added_tokens;
  Normalization normalization = Normalization::kNone;
  std::vector<PreTokenizerStep> pre_tokenizer;
};

// INVALID_ARGUMENT for what is no tokenizer.json or contradicts itself, UNIMPLEMENTED for a tokenizer that is
// not byte-level BPE or has a part we lack; both name the part. Truncation, padding and post-processing are
// left to the caller of the tokenizer, so they are not read.
absl::StatusOr<TokenizerSpec> ParseTokenizerJson(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_TOKENIZER_JSON_H_
