#include "core/config/nearest_name.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("the edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("abc", "abc") == 0);
  CHECK(EditDistance("abc", "abd") == 1);
  CHECK(EditDistance("abc", "acb") == 1);
  CHECK(EditDistance("kitten", "sitting") == 3);
}

TEST_CASE("a misspelt name finds what was meant") {
  const std::vector<std::string> names = {"learning_rate", "num_steps", "seed"};
  CHECK(NearestName("learning_rat", names) == "learning_rate");
  CHECK(NearestName("sede", names) == "seed");
  CHECK(NearestName("num_step", names) == "num_steps");
}

TEST_CASE("a name that resembles none finds none") {
  CHECK(NearestName("temperature", {"seed", "learning_rate"}).empty());
  CHECK(NearestName("x", {"ab"}).empty());
  CHECK(NearestName("anything", {}).empty());
  CHECK(NearestName(std::string(100000, 'a'), {"a"}).empty());
}

TEST_CASE("a suggestion names the nearest, else all there are") {
  CHECK(SuggestName("sede", {"seed", "size"}) == "; did you mean \"seed\"?");
  CHECK(SuggestName("temperature", {"seed", "size"}) == "; known are seed, size");
  CHECK(SuggestName("x", {}).empty());
}

}  // namespace warpsmith
