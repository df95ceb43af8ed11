#include "reward_service/rubric/cpp_tokens.h"

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

TEST_CASE("text that is disabled is left out up to its else") {
  CHECK(Joined("#if 0\na\n#if 1\nb\n#endif\n#else\nc\n#endif\nd") == "c d ");
  CHECK(Joined("#if 1\na\n#endif\n") == "a ");
  CHECK(Joined("#if 0\nnever closed") == "");
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
