#include "core/tokenizer/tokenizer.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"
#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/pre_tokenizer.h"
#include "core/tokenizer/tokenizer_json.h"
#include "core/tokenizer/unicode.h"

namespace warpsmith {
namespace {

constexpr char kMainFile[] = "tokenizer.json";
constexpr const char* kOtherFiles[] = {
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "chat_template.jinja"};
constexpr int64_t kFileBytesMax = int64_t{128} << 20;

// The tokens that are looked for before, or after, normalisation; the latter in their normalised form.
AddedTokenMatcher MatcherOf(const TokenizerSpec& spec, bool normalized) {
  std::vector<AddedToken> tokens;
  for (AddedToken token : spec.added_tokens) {
    if (token.normalized != normalized) continue;
    if (normalized && spec.normalization == Normalization::kNfc) token.content = NormalizeNfc(token.content);
    tokens.push_back(std::move(token));
  }
  return AddedTokenMatcher(std::move(tokens));
}

absl::flat_hash_map<std::string, int32_t> IdsOf(const TokenizerSpec& spec) {
  absl::flat_hash_map<std::string, int32_t> ids;
  for (size_t id = 0; id < spec.token_bytes.size(); ++id) {
    if (!spec.token_bytes[id].empty()) ids.emplace(spec.token_bytes[id], static_cast<int32_t>(id));
  }
  for (const AddedToken& token : spec.added_tokens) ids[token.content] = token.id;
  return ids;
}

std::vector<char> SpecialMarks(const TokenizerSpec& spec) {
  std::vector<char> is_special(spec.token_bytes.size(), 0);
  for (const AddedToken& token : spec.added_tokens) is_special[static_cast<size_t>(token.id)] = token.special;
  return is_special;
}

}  // namespace

struct Tokenizer::Parts {
  Parts(TokenizerSpec spec, BpeModel bpe_model)
      : before_normalization(MatcherOf(spec, false)),
        after_normalization(MatcherOf(spec, true)),
        normalization(spec.normalization),
        pre_tokenizer(std::move(spec.pre_tokenizer)),
        model(std::move(bpe_model)),
        ids(IdsOf(spec)),
        is_special(SpecialMarks(spec)),
        token_bytes(std::move(spec.token_bytes)) {}

  AddedTokenMatcher before_normalization;
  AddedTokenMatcher after_normalization;
  Normalization normalization;
  PreTokenizer pre_tokenizer;
  BpeModel model;
  absl::flat_hash_map<std::string, int32_t> ids;
  std::vector<char> is_special;  // by id
  std::vector<std::string> token_bytes;
  std::vector<TokenizerFile> files;
  std::string sha256;

  std::string Normalize(std::string_view text) const {
    return normalization == Normalization::kNfc ? NormalizeNfc(text) : std::string(text);
  }
};

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::filesystem::path& directory) {
  ASSIGN_OR_RETURN(std::string main_file, ReadFile(directory / kMainFile, kFileBytesMax));
  std::vector<TokenizerFile> files = {{kMainFile, std::move(main_file)}};
  for (const char* name : kOtherFiles) {
    absl::StatusOr<std::string> content = ReadFile(directory / name, kFileBytesMax);
    if (absl::IsNotFound(content.status())) continue;
    RETURN_IF_ERROR(content.status());
    files.push_back({name, *std::move(content)});
  }
  absl::StatusOr<Tokenizer> tokenizer = FromFiles(std::move(files));
  if (tokenizer.ok()) return tokenizer;
  return absl::Status(tokenizer.status().code(),
                      absl::StrCat(directory.string(), "/", tokenizer.status().message()));
}

absl::StatusOr<Tokenizer> Tokenizer::Parse(std::string tokenizer_json) {
  return FromFiles({{kMainFile, std::move(tokenizer_json)}});
}

absl::StatusOr<Tokenizer> Tokenizer::FromFiles(std::vector<TokenizerFile> files) {
  ASSIGN_OR_RETURN(TokenizerSpec spec, ParseTokenizerJson(files[0].content));
  ASSIGN_OR_RETURN(BpeModel model,
                   BpeModel::Create(std::move(spec.token_ids), spec.merges, spec.whole_pieces));
  auto parts = std::make_unique<Parts>(std::move(spec), std::move(model));
  parts->sha256 = Sha256Hex(files[0].content);
  parts->files = std::move(files);
  return Tokenizer(std::move(parts));
}

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                                       SpecialTokens special_tokens) const {
  const TextPart part{text, special_tokens};
  return EncodeParts({&part, 1});
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::EncodeParts(std::span<const TextPart> parts) const {
  size_t num_bytes = 0;
  for (const TextPart& part : parts) num_bytes += part.text.size();
  if (num_bytes > kTextBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("cannot tokenize ", num_bytes, " bytes of text; at most ",
                                                   kTextBytesMax, " are allowed"));
  }
  Encoding encoding;
  for (const TextPart& part : parts) {
    const std::string text = ReplaceInvalidUtf8(part.text);
    if (part.special_tokens == SpecialTokens::kAsText) {
      encoding.run += text;
    } else {
      RETURN_IF_ERROR(EncodeParsed(text, &encoding));
    }
  }
  RETURN_IF_ERROR(EncodeRun(&encoding));
  return std::move(encoding.ids);
}

absl::Status Tokenizer::EncodeParsed(std::string_view text, Encoding* encoding) const {
  for (const AddedTokenPart& part : parts_->before_normalization.Split(text)) {
    if (part.id >= 0 || parts_->after_normalization.empty()) {
      RETURN_IF_ERROR(Add(part, encoding));
      continue;
    }
    const std::string normalized = parts_->Normalize(part.text);
    for (const AddedTokenPart& finer : parts_->after_normalization.Split(normalized)) {
      RETURN_IF_ERROR(Add(finer, encoding));
    }
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::Add(const AddedTokenPart& part, Encoding* encoding) const {
  if (part.id < 0) {
    encoding->run += part.text;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(EncodeRun(encoding));
  encoding->ids.push_back(part.id);
  return absl::OkStatus();
}

absl::Status Tokenizer::EncodeRun(Encoding* encoding) const {
  const std::string normalized = parts_->Normalize(encoding->run);
  encoding->run.clear();
  ASSIGN_OR_RETURN(const PreTokenizer::Pieces pieces, parts_->pre_tokenizer.Split(normalized));
  for (const std::string_view piece : pieces.views) parts_->model.Encode(piece, &encoding->ids);
  return absl::OkStatus();
}

std::string Tokenizer::DecodeBytes(std::span<const int32_t> ids, DecodeSpecial special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) continue;
    if (special == DecodeSpecial::kSkip && IsSpecial(id)) continue;
    bytes += parts_->token_bytes[static_cast<size_t>(id)];
  }
  return bytes;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, DecodeSpecial special) const {
  return ReplaceInvalidUtf8(DecodeBytes(ids, special));
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(parts_->token_bytes.size()); }

std::optional<int32_t> Tokenizer::TokenId(std::string_view text) const {
  const auto found = parts_->ids.find(AbslView(text));
  if (found == parts_->ids.end()) return std::nullopt;
  return found->second;
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return id >= 0 && id < vocab_size() && parts_->is_special[static_cast<size_t>(id)] != 0;
}

const std::vector<TokenizerFile>& Tokenizer::files() const { return parts_->files; }

const std::string& Tokenizer::sha256() const { return parts_->sha256; }

}  // namespace warpsmith
