#include "reward_service/program/cpp_tokens.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string Joined(const std::string& source) {
  std::string text;
  for (const std::string_view token : CppTokens(source)) text.append(token).push_back(' ');
  return text;
}

TEST_CASE("words, numbers and signs are tokens; comments, literals and directives are not") {
  CHECK(Joined("int a1=b+2.5f; // end\n/* x */ f(\"str\\\"ing\", 'c');") ==
        "int a1 = b + 2 . 5f ; f ( , ) ; ");
  CHECK(Joined("#include <a>\n  #define X \\\n  y\nz;") == "z ; ");
}

TEST_CASE("raw literals end at their own delimiter") { CHECK(Joined("a R\"x( )\" )x\" b") == "a b "); }

TEST_CASE(
    "a delimiter over the language's 16 characters opens no raw literal, and costs no product of lengths") {
  CHECK(Joined("a R\"0123456789abcdef( )\" )0123456789abcdef\" b") == "a b ");
  CHECK(Joined("a R\"0123456789abcdef0( )\" b") == "a b ");
  const std::string half(1 << 19, ')');
  CHECK(Joined("R\"" + half + "(" + half) == "");
}

TEST_CASE("text that is disabled is left out up to its else") {
  CHECK(Joined("#if 0\na\n#if 1\nb\n#endif\n#else\nc\n#endif\nd") == "c d ");
  CHECK(Joined("#if 1\na\n#endif\n") == "a ");
  CHECK(Joined("#if 0\nnever closed") == "");
}

TEST_CASE("what a compiler takes for a comment or a literal is one") {
  CHECK(Joined("a // x \\\nb\nc") == "a c ");
  CHECK(Joined("#define X /* over\nlines */ 1\na") == "a ");
  CHECK(Joined("#if 0 // never\na\n#endif\nb") == "b ");
  CHECK(Joined("a R\"x( )x )x\" b") == "a b ");
  CHECK(Joined("FOUR\"x(\" b") == "FOUR b ");
  CHECK(Joined("1'000 + 'c' + 2") == "1'000 + + 2 ");
}

TEST_CASE("lexemes keep literals and preprocessor lines, in the order of the source") {
  std::string kinds;
  const std::string source = "#include <a>\nf(\"s\", 'c', R\"(r)\");";
  for (const CppLexeme& lexeme : CppLexemes(source)) kinds += "wsSCde"[static_cast<int>(lexeme.kind)];
  CHECK(kinds == "dwswsewsSsCsSss");
}

TEST_CASE("text that does not lex ends the tokens and nothing else") {
  CHECK(Joined("a /* open") == "a ");
  CHECK(Joined("a \"open\nb") == "a b ");
  CHECK(Joined("R\"") == "");
  CHECK(Joined("#") == "");
  CHECK(Joined("\\") == "\\ ");
}

}  // namespace
}  // namespace warpsmith
