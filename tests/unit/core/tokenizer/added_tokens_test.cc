#include "core/tokenizer/added_tokens.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Parts as "text" or "[id:text]".
std::string Show(const std::vector<AddedToken>& tokens, const std::string& text) {
  const AddedTokenMatcher matcher(tokens);
  std::string shown;
  for (const AddedTokenPart& part : matcher.Split(text)) {
    shown += part.id < 0 ? "(" + std::string(part.text) + ")"
                         : "[" + std::to_string(part.id) + ":" + std::string(part.text) + "]";
  }
  return shown;
}

}  // namespace

TEST_CASE("the leftmost token is found, and of those that begin there the longest") {
  const std::vector<AddedToken> tokens = {
      {.id = 1, .content = "ab"}, {.id = 2, .content = "abc"}, {.id = 3, .content = "bcd"}};
  CHECK(Show(tokens, "xabcdab") == "(x)[2:abc](d)[1:ab]");
  CHECK(Show(tokens, "bcdabd") == "[3:bcd][1:ab](d)");
}

TEST_CASE("no text, no tokens, and a token cut short") {
  CHECK(Show({{.id = 1, .content = "<end>"}}, "") == "");
  CHECK(Show({}, "text") == "(text)");
  CHECK(Show({{.id = 1, .content = "<end>"}}, "<en<end>d><end") == "(<en)[1:<end>](d><end)");
}

TEST_CASE("stripping tokens take white space along, also Unicode's") {
  CHECK(Show({{.id = 1, .content = "<l>", .lstrip = true}}, "a \t\xe3\x80\x80<l> b") ==
        "(a)[1: \t\xe3\x80\x80<l>]( b)");
  CHECK(Show({{.id = 1, .content = "<r>", .rstrip = true}}, "a <r> \n b") == "(a )[1:<r> \n ](b)");
  const std::vector<AddedToken> both = {{.id = 1, .content = "<b>", .lstrip = true, .rstrip = true}};
  CHECK(Show(both, " <b>  <b> ") == "[1: <b>  ][1:<b> ]");
}

TEST_CASE("a single word is found only between characters that are of no word") {
  const std::vector<AddedToken> word = {{.id = 1, .content = "word", .single_word = true}};
  CHECK(Show(word, "word") == "[1:word]");
  CHECK(Show(word, "a word, word") == "(a )[1:word](, )[1:word]");
  CHECK(Show(word, "words sword w\xc3\xa9word word_") == "(words sword w\xc3\xa9word word_)");
}

}  // namespace warpsmith
