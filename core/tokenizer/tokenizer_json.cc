#include "core/tokenizer/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/tokenizer/byte_alphabet.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kTokenIdMax = (int64_t{1} << 24) - 1;  // bounds the table that a hostile id could ask for
constexpr int kNestingMax = 16;

// The words of GPT-2, which a "ByteLevel" step splits into unless it says otherwise.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

absl::Status Unsupported(const std::string& part, const Json& value) {
  return absl::UnimplementedError(absl::StrCat("tokenizer.json: ", part, " ", Escape(value.dump(), 200),
                                               " is not supported; byte-level BPE is"));
}

absl::Status Invalid(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer.json: ", what));
}

// An absent member reads as null.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

bool Flag(const Json& object, const char* name) { return object.value(name, false); }

bool IsEmpty(const Json& value) { return value.is_null() || value == ""; }

absl::Status ParseNormalizer(const Json& json, int depth, Normalization* normalization) {
  if (json.is_null()) return absl::OkStatus();
  const std::string type = json.at("type");
  if (type == "NFC") {
    *normalization = Normalization::kNfc;
    return absl::OkStatus();
  }
  if (type != "Sequence" || depth > kNestingMax) return Unsupported("normalizer", json);
  for (const Json& part : json.at("normalizers"))
    RETURN_IF_ERROR(ParseNormalizer(part, depth + 1, normalization));
  return absl::OkStatus();
}

std::optional<SplitBehavior> ParseBehavior(const std::string& name) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return std::nullopt;
}

absl::Status AddSplit(const Json& json, std::vector<PreTokenizerStep>* steps) {
  const std::optional<SplitBehavior> behavior = ParseBehavior(json.at("behavior"));
  if (!behavior.has_value()) return Unsupported("split", json);
  const Json& pattern = json.at("pattern");
  const bool is_regex = pattern.contains("Regex");
  const std::string text = pattern.at(is_regex ? "Regex" : "String");
  if (text.empty()) return Unsupported("split", json);
  ASSIGN_OR_RETURN(Regex regex, is_regex ? Regex::Compile(text) : Regex::CompileLiteral(text));
  const SplitMatches matches = Flag(json, "invert") ? SplitMatches::kBetween : SplitMatches::kPattern;
  steps->push_back(SplitStep{std::move(regex), *behavior, matches});
  return absl::OkStatus();
}

absl::Status AddPattern(std::string_view pattern, SplitBehavior behavior,
                        std::vector<PreTokenizerStep>* steps) {
  ASSIGN_OR_RETURN(Regex regex, Regex::Compile(pattern));
  steps->push_back(SplitStep{std::move(regex), behavior});
  return absl::OkStatus();
}

// `is_byte_level` becomes true at the step that turns text into bytes; nothing may follow it.
absl::Status ParsePreTokenizer(const Json& json, int depth, std::vector<PreTokenizerStep>* steps,
                               bool* is_byte_level) {
  if (json.is_null()) return absl::OkStatus();
  if (*is_byte_level || depth > kNestingMax) return Unsupported("pre_tokenizer", json);
  const std::string type = json.at("type");
  if (type == "Sequence") {
    for (const Json& part : json.at("pretokenizers")) {
      RETURN_IF_ERROR(ParsePreTokenizer(part, depth + 1, steps, is_byte_level));
    }
    return absl::OkStatus();
  }
  if (type == "Split") return AddSplit(json, steps);
  if (type == "Digits") {
    return AddPattern(R"(\p{N})",
                      Flag(json, "individual_digits") ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                      steps);
  }
  if (type != "ByteLevel") return Unsupported("pre_tokenizer", json);
  *is_byte_level = true;
  if (json.value("add_prefix_space", true)) steps->push_back(PrefixSpaceStep{});
  if (json.value("use_regex", true)) return AddPattern(kGpt2Pattern, SplitBehavior::kIsolated, steps);
  return absl::OkStatus();
}

// Enters a token under its id, which no other token may have.
absl::Status AddTokenBytes(int64_t id, std::string bytes, std::vector<std::string>* token_bytes) {
  if (id < 0 || id > kTokenIdMax)
    return Invalid(absl::StrCat("token id ", id, " is not from 0 to ", kTokenIdMax));
  if (token_bytes->size() <= static_cast<size_t>(id)) token_bytes->resize(static_cast<size_t>(id) + 1);
  std::string& entry = (*token_bytes)[static_cast<size_t>(id)];
  if (!entry.empty() && entry != bytes) {
    return Invalid(absl::StrCat("token id ", id, " stands for \"", Escape(entry, 100), "\" and for \"",
                                Escape(bytes, 100), "\""));
  }
  entry = std::move(bytes);
  return absl::OkStatus();
}

absl::Status ParseVocabulary(const Json& vocabulary, TokenizerSpec* spec) {
  spec->token_ids.reserve(vocabulary.size());
  spec->token_bytes.reserve(vocabulary.size());
  for (const auto& [written, id_json] : vocabulary.items()) {
    const int64_t id = id_json.get<int64_t>();
    // What is not in the alphabet of bytes cannot come out of merges; it is an added token.
    const std::optional<std::string> bytes = BytesOfAlphabet(written);
    RETURN_IF_ERROR(AddTokenBytes(id, bytes.value_or(written), &spec->token_bytes));
    if (bytes.has_value()) spec->token_ids[*bytes] = static_cast<int32_t>(id);
  }
  return absl::OkStatus();
}

// Both sides of a merge, written as "a b" or as ["a", "b"].
absl::StatusOr<std::pair<std::string, std::string>> SidesOf(const Json& merge) {
  if (merge.is_array() && merge.size() == 2) {
    return std::make_pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::make_pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return Invalid(absl::StrCat("merge ", Escape(merge.dump(), 100), " is not a pair of tokens"));
}

absl::StatusOr<BpeMerge> ParseMerge(const Json& json, const TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const auto sides, SidesOf(json));
  const std::optional<std::string> left = BytesOfAlphabet(sides.first), right = BytesOfAlphabet(sides.second);
  if (left.has_value() && right.has_value()) {
    const auto left_id = spec.token_ids.find(*left), right_id = spec.token_ids.find(*right);
    const auto product_id = spec.token_ids.find(*left + *right);
    const auto end = spec.token_ids.end();
    if (left_id != end && right_id != end && product_id != end) {
      return BpeMerge{left_id->second, right_id->second, product_id->second};
    }
  }
  return Invalid(absl::StrCat("merge ", Escape(json.dump(), 100),
                              " names or makes a token that is not in the vocabulary"));
}

absl::Status ParseModel(const Json& json, TokenizerSpec* spec) {
  if (json.value("type", "BPE") != "BPE") return Unsupported("model", json.at("type"));
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!IsEmpty(Member(json, name))) return Unsupported(name, json.at(name));
  }
  if (Flag(json, "byte_fallback")) return Unsupported("byte_fallback", json.at("byte_fallback"));
  if (Flag(json, "ignore_merges")) spec->whole_pieces = WholePieces::kAtOnce;
  RETURN_IF_ERROR(ParseVocabulary(json.at("vocab"), spec));
  const Json& merges = json.at("merges");
  spec->merges.reserve(merges.size());
  for (const Json& merge : merges) {
    ASSIGN_OR_RETURN(const BpeMerge parsed, ParseMerge(merge, *spec));
    spec->merges.push_back(parsed);
  }
  return absl::OkStatus();
}

absl::Status ParseAddedTokens(const Json& json, TokenizerSpec* spec) {
  for (const Json& entry : json) {
    AddedToken token;
    token.content = entry.at("content").get<std::string>();
    token.special = Flag(entry, "special");
    token.single_word = Flag(entry, "single_word");
    token.lstrip = Flag(entry, "lstrip");
    token.rstrip = Flag(entry, "rstrip");
    token.normalized = entry.value("normalized", !token.special);
    if (token.content.empty()) return Invalid("an added token is empty");
    const int64_t id = entry.at("id").get<int64_t>();
    RETURN_IF_ERROR(AddTokenBytes(id, token.content, &spec->token_bytes));
    token.id = static_cast<int32_t>(id);
    spec->added_tokens.push_back(std::move(token));
  }
  return absl::OkStatus();
}

// Text that merges turn into a special token would let its author forge the format.
absl::Status CheckNoForgery(const TokenizerSpec& spec) {
  for (const AddedToken& token : spec.added_tokens) {
    if (!token.special) continue;
    for (const BpeMerge& merge : spec.merges) {
      if (merge.product == token.id)
        return Invalid("a merge makes the special token " + Escape(token.content, 100));
    }
  }
  return absl::OkStatus();
}

// Throws what nlohmann's accessors throw at a member that is missing or of another type.
absl::StatusOr<TokenizerSpec> ParseSpec(const Json& json) {
  TokenizerSpec spec;
  RETURN_IF_ERROR(ParseNormalizer(Member(json, "normalizer"), 0, &spec.normalization));
  bool is_byte_level = false;
  RETURN_IF_ERROR(ParsePreTokenizer(Member(json, "pre_tokenizer"), 0, &spec.pre_tokenizer, &is_byte_level));
  if (!is_byte_level) return Unsupported("pre_tokenizer without ByteLevel", Member(json, "pre_tokenizer"));
  RETURN_IF_ERROR(ParseModel(json.at("model"), &spec));
  RETURN_IF_ERROR(ParseAddedTokens(Member(json, "added_tokens"), &spec));
  RETURN_IF_ERROR(CheckNoForgery(spec));
  return spec;
}

}  // namespace

absl::StatusOr<TokenizerSpec> ParseTokenizerJson(std::string_view text) {
  if (NestsDeeperThan(text)) return Invalid("it nests too deeply");
  try {
    return ParseSpec(Json::parse(text));
  } catch (const Json::exception& error) {
    return Invalid(error.what());
  }
}

}  // namespace warpsmith
