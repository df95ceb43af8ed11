#include "rollout_workers/openai_api/stop_strings.h"

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith::openai {
namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
};

// Feeds `pieces`; what has come out by the end.
Outcome Run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopStrings matcher(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) outcome.text += matcher.Push(piece);
  outcome.stopped = matcher.stopped();
  outcome.text += matcher.Finish();
  return outcome;
}

}  // namespace

TEST_CASE("without a stop string all text comes at once") {
  StopStrings matcher({});
  CHECK(matcher.Push("anything") == "anything");
  CHECK(matcher.Finish().empty());
  CHECK_FALSE(matcher.stopped());
}

TEST_CASE("a stop string and what follows are cut off, wherever it is cut into pieces") {
  for (size_t cut = 0; cut <= 12; ++cut) {
    const std::string text = "int x;```end";
    const Outcome outcome = Run({"```"}, {text.substr(0, cut), text.substr(cut), "never"});
    CHECK(outcome.text == "int x;");
    CHECK(outcome.stopped);
  }
}

TEST_CASE("text is held back only while it may begin a stop string") {
  StopStrings matcher({"\n\n\n", "</s>"});
  CHECK(matcher.Push("a\n") == "a");
  CHECK(matcher.Push("\n") == "");
  CHECK(matcher.Push("b</") == "\n\nb");
  CHECK(matcher.Push("x") == "</x");
  CHECK(matcher.Push("y\n") == "y");
  CHECK(matcher.Finish() == "\n");
  CHECK_FALSE(matcher.stopped());
}

TEST_CASE("a beginning that fails can hold the true beginning") {
  CHECK(Run({"aab"}, {"a", "a", "a", "b", "c"}).text == "a");
  CHECK(Run({"abac"}, {"abab", "ac"}).text == "ab");
}

TEST_CASE("of several stop strings the first in the text counts, of those complete at once") {
  CHECK(Run({"de", "bc"}, {"abcde"}).text == "a");
  CHECK(Run({"bcd", "c"}, {"abcd"}).text == "a");
  CHECK(Run({"bcd", "c"}, {"ab", "c", "d"}).text == "ab");
}

TEST_CASE("characters of several bytes stop and are given out whole") {
  CHECK(Run({"é"}, {"caf", "é", "s"}).text == "caf");
  CHECK(Run({"世界"}, {"世", "世界"}).text == "世");
}

TEST_CASE("random texts come out as a search over the whole would cut them") {
  for (int seed = 0; seed < 400; ++seed) {
    std::string text;
    std::vector<std::string> pieces;
    for (int i = 0; i < 30; ++i) {
      const char letter = static_cast<char>('a' + UniformWord(seed, i) % 2);
      text += letter;
      if (pieces.empty() || UniformWord(seed, 100 + i) % 3 == 0) pieces.emplace_back();
      pieces.back() += letter;
    }
    const std::string stop = text.substr(UniformWord(seed, 200) % 25, 1 + UniformWord(seed, 201) % 5);
    INFO("seed " << seed << ", stop " << stop);
    CHECK(Run({stop}, pieces).text == text.substr(0, text.find(stop)));
  }
}

}  // namespace warpsmith::openai
