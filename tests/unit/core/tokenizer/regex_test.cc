#include "core/tokenizer/regex.h"

#include <string>

#include "core/tokenizer/regex_translation.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<std::string> MatchesOf(const std::string& pattern, const std::string& text) {
  const Regex regex = Regex::Compile(pattern).value();
  std::vector<TextRange> ranges;
  REQUIRE(regex.FindAll(text, &ranges).ok());
  std::vector<std::string> matches;
  for (const TextRange& range : ranges) matches.push_back(text.substr(range.begin, range.end - range.begin));
  return matches;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("matches are leftmost, do not overlap, and see what lies before them") {
  CHECK(MatchesOf("aa", "aaaaa") == Strings{"aa", "aa"});
  CHECK(MatchesOf("(?<=\\[)[0-9](?=\\])", "[1] 2 [3") == Strings{"1"});
  CHECK(MatchesOf("x", "").empty());
  CHECK(MatchesOf("x", "abc").empty());
}

TEST_CASE("white space is Unicode's White_Space") {
  CHECK(MatchesOf("\\s+",
                  "a\xe1\xa0\x8e"
                  "b")
            .empty());  // U+180E is none any more
  CHECK(MatchesOf("\\S+", "\xe1\xa0\x8e") == Strings{"\xe1\xa0\x8e"});
  CHECK(MatchesOf("[\\S]+", "\xe1\xa0\x8e \xc2\x85") == Strings{"\xe1\xa0\x8e"});
  CHECK(MatchesOf("\\s", "\xc2\x85") == Strings{"\xc2\x85"});  // U+0085 is
  CHECK(MatchesOf("[^\\s]", "\xe3\x80\x80").empty());          // and U+3000
}

TEST_CASE("case is ignored as Unicode folds it") {
  CHECK(MatchesOf("(?i:'s)", "'s'S'\xc5\xbf'x") == Strings{"'s", "'S", "'\xc5\xbf"});
}

TEST_CASE("letters and numbers are those of Unicode 16") {
  const std::string ideograph = "\xf0\xb1\x8d\x90";  // U+31350, of Unicode 15
  const std::string numeral = "\xf0\x9d\x8b\x80";    // U+1D2C0, of Unicode 15
  CHECK(MatchesOf("\\p{L}", ideograph) == Strings{ideograph});
  CHECK(MatchesOf("[^\\p{L}]", ideograph).empty());
  CHECK(MatchesOf("\\P{L}", ideograph).empty());
  CHECK(MatchesOf("\\p{N}", numeral) == Strings{numeral});
  CHECK(MatchesOf("\\d", numeral).empty());
}

TEST_CASE("a pattern that is wrong, or may match nothing, is refused") {
  for (const char* pattern : {"(", "a{2,1}", "[b-a]", "a*", "x|", "(?=a)", ""}) {
    INFO(pattern);
    CHECK(absl::IsInvalidArgument(Regex::Compile(pattern).status()));
  }
}

TEST_CASE("what the two engines read differently is refused, with its place") {
  for (const char* pattern :
       {"\\w+", "[\\w]", "\\bx", "(?i)x", "(?m:x)", "(?<n>x)", "[a[b]]", "[a&&b]", "x{,3}", "x{1,3}+", "\\h",
        "\\", "[a", "\\u12", "[\\D]", "[\\P{L}]", "\\R", "\\1"}) {
    INFO(pattern);
    CHECK(absl::IsUnimplemented(TranslateRegex(pattern).status()));
  }
  CHECK(TranslateRegex("ab\\w").status().message().find("at byte 2") != absl::string_view::npos);
}

TEST_CASE("what both read alike is left alone") {
  for (const char* pattern : {"[^\\r\\n]?x+|y*?z{1,3}", "(?:a|b)++", "[]a]", "[^]a]", "\\[\\]\\{\\}",
                              "\\x{20ac}", "(?<!a)(?!b)c", "\\p{Lu}\\P{M}", "a{2}", "."}) {
    CHECK(TranslateRegex(pattern).value() == pattern);
  }
  CHECK(TranslateRegex("\\u20AC").value() == "\\x{20AC}");
  CHECK(TranslateRegex("\\v").value() == "\\x{b}");
}

TEST_CASE("a literal is matched letter by letter") {
  const Regex regex = Regex::CompileLiteral("a.b\\").value();
  std::vector<TextRange> ranges;
  REQUIRE(regex.FindAll("axb a.b\\", &ranges).ok());
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].begin == 4);
}

TEST_CASE("a line of megabytes is one match: backtracking gets the stack it needs") {
  const std::string line(size_t{4} << 20, 'x');
  CHECK(MatchesOf("(?:[^\\n0-9]|(?<=\\[)[0-9](?=\\]))+", line) == Strings{line});
}

TEST_CASE("many short matches in a long text take linear time") {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "ab ";
  CHECK(MatchesOf("\\p{L}+", text).size() == 200'000);
}

}  // namespace warpsmith
