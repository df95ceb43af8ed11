#include "reward_service/program/python_tokens.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Lines as "depth:", strings in angle brackets.
std::string Shown(const std::string& source) {
  std::string text;
  for (const PythonLexeme& lexeme : PythonLexemes(source)) {
    if (lexeme.kind == PythonKind::kLine) {
      text += std::to_string(lexeme.depth) + ": ";
    } else if (lexeme.kind == PythonKind::kString) {
      text += "<" + lexeme.text + "> ";
    } else {
      text += lexeme.text + " ";
    }
  }
  return text;
}

TEST_CASE("lines have depths, comments and blank lines are gone, brackets join lines") {
  CHECK(Shown("# a\n\nif x:  # b\n    y = [1,\n  # c\n 2]\n\n  # d\nz") ==
        "0: if x : 1: y = [ 1 , 2 ] 0: z ");
  CHECK(Shown("a = 1 + \\\n  2\n") == "0: a = 1 + 2 ");
  CHECK(Shown("\tx\n\t\ty\n") == "0: x 1: y ");
}

TEST_CASE("strings mean what Python takes them for") {
  CHECK(Shown(R"(a = "x\n\x41\102\u0043\"" 'y')") == "0: a = <x\nABC\"y> ");
  CHECK(Shown(R"(r"\n" b'\t')") == "0: <\\n\t> ");
  CHECK(Shown("f'{{x}}{y}'") == "0: <{x}{y}> ");
  CHECK(Shown("'''a\n# no comment\n''' + \"\"\"b\"\"\"") == "0: <a\n# no comment\n> + <b> ");
  CHECK(Shown("'\\u202e'") == "0: <\xff> ");
  CHECK(Shown("'a\\\nb'") == "0: <ab> ");
}

TEST_CASE("what does not lex gives lexemes all the same") {
  CHECK(Shown("'open\nx") == "0: <open> 0: x ");
  CHECK(Shown("'''open\nx") == "0: <open\nx> ");
  CHECK(Shown("'\\") == "0: <> ");
  CHECK(Shown("'\\x") == "0: <\xff> ");
  CHECK(Shown(")]\nx") == "0: ) ] 0: x ");
  CHECK(Shown("\\") == "0: ");
}

}  // namespace
}  // namespace warpsmith
