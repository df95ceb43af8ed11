#include "core/tokenizer/byte_alphabet.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("every byte is written and read back") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    CHECK(BytesOfAlphabet(WriteInAlphabet(bytes)) == bytes);
  }
}

TEST_CASE("bytes are written as GPT-2 writes them") {
  CHECK(WriteInAlphabet("a ~") == "a\xc4\xa0~");             // space is U+0120
  CHECK(WriteInAlphabet("\n") == "\xc4\x8a");                // newline is U+010A
  CHECK(WriteInAlphabet("\xad") == "\xc5\x83");              // the soft hyphen is the last, U+0143
  CHECK(WriteInAlphabet("\xc3\xa9") == "\xc3\x83\xc2\xa9");  // printable Latin-1 is itself
}

TEST_CASE("what is not in the alphabet is refused") {
  for (const char* written : {" ", "\n", "\xc2\xad", "\xc5\x84", "\xe2\x82\xac", "\xff", "a\x80"}) {
    CHECK_FALSE(BytesOfAlphabet(written).has_value());
  }
  CHECK(BytesOfAlphabet("") == "");
}

}  // namespace warpsmith
