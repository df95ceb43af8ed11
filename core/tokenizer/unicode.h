// What a tokenizer asks of Unicode besides regular expressions, by utf8proc. All texts are valid UTF-8.
#ifndef WARPSMITH_CORE_TOKENIZER_UNICODE_H_
#define WARPSMITH_CORE_TOKENIZER_UNICODE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace warpsmith {

// Normalization Form C (UAX #15), in which marks assigned after Unicode 9 stay where they are (see
// unicode_additions.h).
std::string NormalizeNfc(std::string_view text);

// Bytes of the White_Space character that `text` begins with, or ends in; 0 if it is none.
size_t FirstSpaceLength(std::string_view text);
size_t LastSpaceLength(std::string_view text);

// Whether the first, or the last, character is one of a word: a letter, mark, decimal digit or connector (UTS
// #18, annex C, \w).
bool BeginsWithWordCharacter(std::string_view text);
bool EndsInWordCharacter(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_UNICODE_H_
