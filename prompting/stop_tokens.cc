#include "prompting/stop_tokens.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFileBytesMax = int64_t{1} << 20;
constexpr const char* kKnownStopTokens[] = {"<|im_end|>", "<|endoftext|>"};

absl::Status Invalid(const std::filesystem::path& path, const Json& value) {
  return absl::InvalidArgumentError(absl::StrCat(path.string(), ": eos_token_id is ",
                                                 Escape(value.dump(), 100),
                                                 ", but must be a token id or a list of them"));
}

// Nothing where the file or the key is not there.
absl::StatusOr<std::optional<TokenIds>> EosOf(const std::filesystem::path& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kFileBytesMax);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  RETURN_IF_ERROR(text.status());
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is not a JSON object"));
  const auto eos = json.find("eos_token_id");
  if (eos == json.end() || eos->is_null()) return std::nullopt;
  TokenIds ids;
  for (const Json& id : eos->is_array() ? *eos : Json::array({*eos})) {
    const bool fits = id.is_number_unsigned() && id.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
    if (!fits) return Invalid(path, *eos);
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

}  // namespace

absl::StatusOr<TokenIds> CheckpointStopTokens(const std::filesystem::path& model_directory) {
  if (model_directory.empty()) return TokenIds();
  for (const char* name : {"generation_config.json", "config.json"}) {
    ASSIGN_OR_RETURN(std::optional<TokenIds> ids, EosOf(model_directory / name));
    if (ids.has_value()) return *std::move(ids);
  }
  return TokenIds();
}

absl::StatusOr<TokenIds> StopTokens(const Tokenizer& tokenizer,
                                    const std::filesystem::path& model_directory) {
  ASSIGN_OR_RETURN(TokenIds ids, CheckpointStopTokens(model_directory));
  for (const int32_t id : ids) {
    if (id < tokenizer.vocab_size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint in ", model_directory.string(), " ends its texts with token ", id,
                     ", and the tokenizer has ", tokenizer.vocab_size(),
                     " tokens: name the tokenizer of this checkpoint as data.tokenizer"));
  }
  for (const char* const text : kKnownStopTokens) {
    const std::optional<int32_t> id = tokenizer.TokenId(text);
    if (id.has_value() && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  if (!ids.empty()) return ids;
  return absl::InvalidArgumentError(
      "the tokenizer has neither <|im_end|> nor <|endoftext|>, and the checkpoint names no eos_token_id, so "
      "that no answer would ever end: name another tokenizer as data.tokenizer");
}

}  // namespace warpsmith
