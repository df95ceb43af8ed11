// Text to token ids and back: byte-level BPE that agrees with the `tokenizers` package to the id.
#ifndef WARPSMITH_CORE_TOKENIZER_TOKENIZER_H_
#define WARPSMITH_CORE_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

struct AddedTokenPart;

// Whether the text of an added token (<|im_end|>, <think>, ...) in the input is that token, or text like any
// other.
enum class SpecialTokens { kParse, kAsText };

// What decoding makes of special tokens.
enum class DecodeSpecial { kKeep, kSkip };

// A file that the tokenizer consists of.
struct TokenizerFile {
  std::string name;
  std::string content;
};

// A part of one text.
struct TextPart {
  std::string_view text;
  SpecialTokens special_tokens = SpecialTokens::kAsText;
};

// Immutable, so any number of threads may use one.
class Tokenizer {
 public:
  // Longer input is refused rather than held in memory several times over.
  static constexpr size_t kTextBytesMax = size_t{16} << 20;

  // Reads `directory`/tokenizer.json, and keeps the other tokenizer files of a Hugging Face checkpoint that
  // lie beside it for files(). NOT_FOUND; INVALID_ARGUMENT or UNIMPLEMENTED for a tokenizer that is wrong or
  // of another kind.
  static absl::StatusOr<Tokenizer> Load(const std::filesystem::path& directory);

  // As Load, from the text of a tokenizer.json.
  static absl::StatusOr<Tokenizer> Parse(std::string tokenizer_json);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The ids of `text`; nothing is put before or after them. Invalid UTF-8 counts as U+FFFD. With kAsText no
  // added token comes out. INVALID_ARGUMENT over kTextBytesMax; RESOURCE_EXHAUSTED for text that the
  // pre-tokenizer's pattern cannot split in bounded memory.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, SpecialTokens special_tokens) const;

  // The ids of one text that is given in parts. An added token is found only within a part that parses them;
  // otherwise the seams of the parts change nothing: between added tokens the text is normalised, split and
  // merged as a whole.
  absl::StatusOr<std::vector<int32_t>> EncodeParts(std::span<const TextPart> parts) const;

  // The bytes of each id, one after the other; they need not be UTF-8. Ids without token, such as the padding
  // of an embedding, are nothing.
  std::string DecodeBytes(std::span<const int32_t> ids, DecodeSpecial special) const;

  // As DecodeBytes, with U+FFFD for what is not UTF-8.
  std::string Decode(std::span<const int32_t> ids, DecodeSpecial special) const;

  // One more than the largest id.
  int32_t vocab_size() const;

  // The id of a token by its text, for an added token as it is written, for others by its bytes.
  std::optional<int32_t> TokenId(std::string_view text) const;

  bool IsSpecial(int32_t id) const;

  // tokenizer.json first; unchanged, for the export of a checkpoint.
  const std::vector<TokenizerFile>& files() const;

  // SHA-256 of tokenizer.json in hexadecimal.
  const std::string& sha256() const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  // Ids so far, and the text since the last added token.
  struct Encoding {
    std::vector<int32_t> ids;
    std::string run;
  };

  static absl::StatusOr<Tokenizer> FromFiles(std::vector<TokenizerFile> files);
  absl::Status EncodeParsed(std::string_view text, Encoding* encoding) const;
  absl::Status Add(const AddedTokenPart& part, Encoding* encoding) const;
  absl::Status EncodeRun(Encoding* encoding) const;

  std::unique_ptr<const Parts> parts_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_TOKENIZER_H_
