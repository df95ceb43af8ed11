// The tokens that end an answer: one list for what trains, what samples and what is exported.
#ifndef WARPSMITH_PROMPTING_STOP_TOKENS_H_
#define WARPSMITH_PROMPTING_STOP_TOKENS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tokenizer/tokenizer.h"

namespace warpsmith {

// Ids in the order in which a checkpoint lists them.
using TokenIds = std::vector<int32_t>;

// What the checkpoint in `model_directory` itself says ends a text: eos_token_id, a number or a
// list, of its generation_config.json, else of its config.json, as transformers reads them. Empty
// where neither says anything, and for an empty path. INVALID_ARGUMENT for a file that is no JSON
// object and an id that is no number of 32 bits.
absl::StatusOr<TokenIds> CheckpointStopTokens(const std::filesystem::path& model_directory);

// CheckpointStopTokens, and behind them what the tokenizer has and the list lacks: the ends of a turn
// and of a text of the families that are known, <|im_end|> and <|endoftext|>, <|eot_id|> and
// <|end_of_text|>, and the "eos_token" of its tokenizer_config.json. INVALID_ARGUMENT for an id that the
// tokenizer does not have, and for an empty list: no answer would ever end.
absl::StatusOr<TokenIds> StopTokens(const Tokenizer& tokenizer, const std::filesystem::path& model_directory);

// Returns the text of a tokenizer_config.json or special_tokens_map.json with `token` as its "eos_token"; the text
// itself where it is that already, where it names none and where it is no JSON object.
std::string WithEosToken(const std::string& json_text, const std::string& token);

}  // namespace warpsmith

#endif  // WARPSMITH_PROMPTING_STOP_TOKENS_H_
