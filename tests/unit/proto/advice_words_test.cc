#include "proto/advice_words.h"

#include <set>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("every advice has words of its own, and the words name it") {
  std::set<std::string> words;
  const auto& values = *v1::Advice_descriptor();
  for (int i = 1; i < values.value_count(); ++i) {
    const auto advice = static_cast<v1::Advice>(values.value(i)->number());
    INFO(v1::Advice_Name(advice));
    CHECK(words.insert(std::string(AdviceWords(advice))).second);
    CHECK(AdviceOfWords(AdviceWords(advice)) == advice);
  }
  CHECK(words.count("") == 0);
}

TEST_CASE("the words are those that Coders have learnt: prompts of skill 2 are made of them") {
  CHECK(AllAdviceWords() ==
        "fix compile error, fix crash, fix bounds, fix shape, fix formula, fix numerics, fuse passes, "
        "vectorise, "
        "thread, avoid the temporary, tile, approximate, keep, compute everything, fuse kernels, coalesce, "
        "vectorise loads, use shared memory, reduce by warp, raise occupancy, avoid spills, fewer launches, "
        "avoid synchronisation");
  CHECK(AdviceWords(v1::ADVICE_AVOID_TEMPORARY) == "avoid the temporary");
}

TEST_CASE("what is not of the list has no words, and other words name nothing") {
  CHECK(AdviceWords(v1::ADVICE_UNSPECIFIED).empty());
  CHECK(AdviceWords(static_cast<v1::Advice>(99)).empty());
  for (const char* text : {"", "unspecified", "Tile", "tile it", "the", "avoid temporary"}) {
    CHECK(AdviceOfWords(text) == v1::ADVICE_UNSPECIFIED);
  }
}

}  // namespace warpsmith
