#include "core/tokenizer/byte_alphabet.h"

#include <array>

#include "core/base/utf8.h"

namespace warpsmith {
namespace {

constexpr int kNumCharacters = 0x144;  // the last one stands for byte 0xad

constexpr bool PrintsAsItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

constexpr std::array<uint16_t, 256> MakeCharacters() {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    characters[byte] = PrintsAsItself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}

constexpr std::array<int16_t, kNumCharacters> MakeBytes() {
  std::array<int16_t, kNumCharacters> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  const std::array<uint16_t, 256> characters = MakeCharacters();
  for (int byte = 0; byte < 256; ++byte) bytes[characters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr std::array<uint16_t, 256> kCharacterOfByte = MakeCharacters();
constexpr std::array<int16_t, kNumCharacters> kByteOfCharacter = MakeBytes();

}  // namespace

std::optional<std::string> BytesOfAlphabet(std::string_view written) {
  std::string bytes;
  bytes.reserve(written.size());
  while (!written.empty()) {
    const size_t length = Utf8CharacterLength(written);
    if (length == 0 || length > 2) return std::nullopt;  // the whole alphabet is below U+0800
    const auto first = static_cast<unsigned char>(written[0]);
    const int character =
        length == 1 ? first : (first & 0x1f) << 6 | (static_cast<unsigned char>(written[1]) & 0x3f);
    if (character >= kNumCharacters || kByteOfCharacter[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOfCharacter[character]));
    written.remove_prefix(length);
  }
  return bytes;
}

std::string WriteInAlphabet(std::string_view bytes) {
  std::string written;
  written.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    const uint16_t character = kCharacterOfByte[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      written.push_back(static_cast<char>(character));
    } else {
      written.push_back(static_cast<char>(0xc0 | character >> 6));
      written.push_back(static_cast<char>(0x80 | (character & 0x3f)));
    }
  }
  return written;
}

}  // namespace warpsmith
