#include "prompting/stop_tokens.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFileBytesMax = int64_t{1} << 20;
constexpr const char* kKnownStopTokens[] = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>"};

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

// The text of a special token, which is written as it is or as an object with its flags. Null: it is neither.
template <typename AnyJson>
std::string* TextOfToken(AnyJson* token) {
  if (token->is_object() && token->contains("content")) token = &(*token)["content"];
  return token->template get_ptr<std::string*>();
}

// "eos_token" of tokenizer_config.json; nothing where there is none that the tokenizer has.
std::optional<int32_t> EosOfTokenizer(const Tokenizer& tokenizer) {
  for (const TokenizerFile& file : tokenizer.files()) {
    if (file.name != "tokenizer_config.json" || NestsDeeperThan(file.content)) continue;
    Json json = Json::parse(file.content, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("eos_token")) continue;
    if (const std::string* const text = TextOfToken(&json["eos_token"])) return tokenizer.TokenId(*text);
  }
  return std::nullopt;
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
  const auto add = [&ids](std::optional<int32_t> id) {
    if (id.has_value() && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  };
  for (const char* const text : kKnownStopTokens) add(tokenizer.TokenId(text));
  add(EosOfTokenizer(tokenizer));
  if (!ids.empty()) return ids;
  return absl::InvalidArgumentError(
      "the tokenizer has none of <|im_end|>, <|endoftext|>, <|eot_id|> and <|end_of_text|>, its "
      "tokenizer_config.json no eos_token, and the checkpoint names no eos_token_id, so that no answer would "
      "ever end: name another tokenizer as data.tokenizer");
}

std::string WithEosToken(const std::string& json_text, const std::string& token) {
  using OrderedJson = nlohmann::ordered_json;
  if (NestsDeeperThan(json_text)) return json_text;
  OrderedJson json = OrderedJson::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("eos_token")) return json_text;
  OrderedJson& written = json["eos_token"];
  std::string* const text = TextOfToken(&written);
  if (text != nullptr && *text == token) return json_text;
  if (text != nullptr) *text = token;
  if (text == nullptr) written = token;
  return json.dump(2) + "\n";
}

}  // namespace warpsmith
