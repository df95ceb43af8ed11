#include "reward_service/compiler/halves/cuda_lexer.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("lexemes are words, signs, literals and whole directives, without comments") {
  const auto lexemes = LexCuda("#define A \\\n  1 // one\nx1 /* two */ = 1.5e-3f + '\\''; \"a\\\"b\"");
  REQUIRE(lexemes.has_value());
  std::vector<std::string> texts;
  for (const CudaLexeme& lexeme : *lexemes) texts.emplace_back(lexeme.text);
  CHECK(texts == std::vector<std::string>{"#define A \\\n  1 // one", "x1", "=", "1.5e-3f", "+", "'\\''", ";",
                                          "\"a\\\"b\""});
  for (const char* other :
       {"a ?\?= b", "a <: 1 :>", "R\"(x)\"", "\"open", "/* open", "a \\\n b", "// a \\\n b", "caf\xc3\xa9"}) {
    INFO(other);
    CHECK_FALSE(LexCuda(other));
  }
}

}  // namespace
}  // namespace warpsmith
