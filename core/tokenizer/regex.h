// A compiled regular expression over UTF-8, by PCRE2 with its JIT.
#ifndef WARPSMITH_CORE_TOKENIZER_REGEX_H_
#define WARPSMITH_CORE_TOKENIZER_REGEX_H_

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

// Immutable, so any number of threads may match at once.
class Regex {
 public:
  // `pattern` as tokenizer.json writes it (see TranslateRegex). INVALID_ARGUMENT if it is none or may match
  // nothing at all; UNIMPLEMENTED for a construct without counterpart.
  static absl::StatusOr<Regex> Compile(std::string_view pattern);

  // Matches `text` itself, which is not empty.
  static absl::StatusOr<Regex> CompileLiteral(std::string_view text);

  // All matches, leftmost first, without overlap. `text` must be valid UTF-8: it is not checked again, as a
  // check a match would make long texts quadratic. RESOURCE_EXHAUSTED if the pattern backtracks beyond all
  // bounds.
  absl::Status FindAll(std::string_view text, std::vector<TextRange>* matches) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  static absl::StatusOr<Regex> CompilePcre(std::string_view pattern, unsigned int options);

  std::shared_ptr<const Code> code_;  // shared by copies of this, never changed
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_REGEX_H_
