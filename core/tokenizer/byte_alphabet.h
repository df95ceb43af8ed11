// The alphabet in which byte-level BPE files write bytes: each of the 256 as one printable character, those
// of Latin-1 that print as themselves, the others from U+0100 on (Radford et al. 2019, "bytes_to_unicode").
#ifndef WARPSMITH_CORE_TOKENIZER_BYTE_ALPHABET_H_
#define WARPSMITH_CORE_TOKENIZER_BYTE_ALPHABET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warpsmith {

// The bytes that `written` stands for; nothing if a character of it is not of the alphabet.
std::optional<std::string> BytesOfAlphabet(std::string_view written);

// `bytes` in the alphabet, as UTF-8.
std::string WriteInAlphabet(std::string_view bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_BYTE_ALPHABET_H_
