// From the dialect of regular expressions that tokenizer.json is written in to that of PCRE2.
#ifndef WARPSMITH_CORE_TOKENIZER_REGEX_TRANSLATION_H_
#define WARPSMITH_CORE_TOKENIZER_REGEX_TRANSLATION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpsmith {

// The `tokenizers` package matches by Oniguruma in Ruby's syntax. What means the same to both engines is
// copied, what differs is rewritten (white space is Unicode's White_Space, which lacks PCRE2's U+180E; \v;
// \uHHHH), and what cannot be rewritten (\w, \b, inline flags other than (?i:...), classes within classes,
// ...) is refused: UNIMPLEMENTED, with its place in the pattern.
absl::StatusOr<std::string> TranslateRegex(std::string_view pattern);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_REGEX_TRANSLATION_H_
