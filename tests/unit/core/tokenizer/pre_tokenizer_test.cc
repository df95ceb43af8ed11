#include "core/tokenizer/pre_tokenizer.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Strings = std::vector<std::string>;

Strings SplitBy(const std::string& pattern, SplitBehavior behavior, const std::string& text,
                SplitMatches matches = SplitMatches::kPattern) {
  std::vector<std::string_view> pieces;
  REQUIRE(SplitText({Regex::Compile(pattern).value(), behavior, matches}, text, &pieces).ok());
  return {pieces.begin(), pieces.end()};
}

}  // namespace

// The expected pieces are those of the package's own example, "the-final--countdown" split at "-".
TEST_CASE("each behaviour does with a match what its name says") {
  const std::string text = "the-final--countdown";
  CHECK(SplitBy("-", SplitBehavior::kRemoved, text) == Strings{"the", "final", "countdown"});
  CHECK(SplitBy("-", SplitBehavior::kIsolated, text) == Strings{"the", "-", "final", "-", "-", "countdown"});
  CHECK(SplitBy("-", SplitBehavior::kMergedWithPrevious, text) ==
        Strings{"the-", "final-", "-", "countdown"});
  CHECK(SplitBy("-", SplitBehavior::kMergedWithNext, text) == Strings{"the", "-final", "-", "-countdown"});
  CHECK(SplitBy("-", SplitBehavior::kContiguous, text) == Strings{"the", "-", "final", "--", "countdown"});
}

TEST_CASE("matches at the ends lose nothing and add nothing") {
  CHECK(SplitBy("-", SplitBehavior::kIsolated, "-a-") == Strings{"-", "a", "-"});
  CHECK(SplitBy("-", SplitBehavior::kMergedWithPrevious, "-a-") == Strings{"-", "a-"});
  CHECK(SplitBy("-", SplitBehavior::kMergedWithNext, "-a-") == Strings{"-a", "-"});
  CHECK(SplitBy("-", SplitBehavior::kRemoved, "-").empty());
  CHECK(SplitBy("-", SplitBehavior::kIsolated, "").empty());
}

TEST_CASE("inverted, the text between matches counts as matches") {
  CHECK(SplitBy("[a-z]+", SplitBehavior::kRemoved, "ab, cd", SplitMatches::kBetween) == Strings{"ab", "cd"});
}

TEST_CASE("steps work on the pieces of the step before") {
  const PreTokenizer pre_tokenizer({SplitStep{Regex::Compile("\n").value(), SplitBehavior::kRemoved},
                                    SplitStep{Regex::Compile("b(?=c)").value(), SplitBehavior::kIsolated}});
  const auto pieces = pre_tokenizer.Split("ab\ncbc").value();
  CHECK(pieces.views == std::vector<std::string_view>{"ab", "c", "b", "c"});
  CHECK(pre_tokenizer.Split("").value().views.empty());
}

TEST_CASE("a prefix space goes before every piece without one") {
  const PreTokenizer pre_tokenizer(
      {SplitStep{Regex::Compile(" ?[a-z]+").value(), SplitBehavior::kIsolated}, PrefixSpaceStep{}});
  const auto pieces = pre_tokenizer.Split("ab cd.").value();
  CHECK(pieces.views == std::vector<std::string_view>{" ab", " cd", " ."});
}

}  // namespace warpsmith
