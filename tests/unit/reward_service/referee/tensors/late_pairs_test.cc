#include "reward_service/referee/tensors/late_pairs.h"

#include <set>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TensorSpec At(int64_t offset, int64_t num_bytes) {
  TensorSpec spec;
  spec.offset = offset;
  spec.num_bytes = num_bytes;
  return spec;
}

// Pairs within `spec`; every one must be within it with both words, or with none.
int NumWithin(const std::vector<LatePair>& pairs, const TensorSpec& spec) {
  const auto is_within = [&](int64_t offset) {
    return offset >= spec.offset && offset + LatePair::kWordBytes <= spec.offset + spec.num_bytes;
  };
  int num = 0;
  for (const LatePair& pair : pairs) {
    CHECK(is_within(pair.first) == is_within(pair.second));
    num += is_within(pair.first) ? 1 : 0;
  }
  return num;
}

TEST_CASE("each part of a large input has a late word, and no word is in two pairs") {
  std::mt19937_64 random(7);
  TaskLayout layout;
  layout.inputs = {At(0, 64 * 8000), At(64 * 8000, 64 * 80 + 7)};
  for (int round = 0; round < 100; ++round) {
    const std::vector<LatePair> pairs = DrawLatePairs(layout, random);
    CHECK(NumWithin(pairs, layout.inputs[0]) >= 60);
    CHECK(NumWithin(pairs, layout.inputs[1]) >= 40);
    CHECK(pairs.size() <= 128);
    std::set<int64_t> words, parts;
    for (const auto& [first, second] : pairs) {
      CHECK(first % 8 == 0);
      CHECK(second % 8 == 0);
      words.insert({first, second});
      if (first < 64 * 8000) parts.insert({first / 8000, second / 8000});
    }
    CHECK(words.size() == 2 * pairs.size());
    CHECK(parts.size() >= 62);
  }
}

TEST_CASE("tensors of few words have the pairs that they have room for") {
  std::mt19937_64 random(7);
  TaskLayout layout;
  CHECK(DrawLatePairs(layout, random).empty());
  layout.inputs = {At(0, 0), At(0, 7), At(64, 15), At(128, 16), At(192, 25)};
  const std::vector<LatePair> pairs = DrawLatePairs(layout, random);
  REQUIRE(pairs.size() == 2);
  CHECK(NumWithin(pairs, layout.inputs[3]) == 1);
  CHECK(NumWithin(pairs, layout.inputs[4]) == 1);
}

TEST_CASE("parameters have as many pairs as one input, each within one of them") {
  std::mt19937_64 random(7);
  TaskLayout layout;
  layout.parameters = {At(0, 3000), At(3008, 8), At(3072, 0), At(3072, 300'000), At(303'104, 16)};
  for (int round = 0; round < 100; ++round) {
    const std::vector<LatePair> pairs = DrawLatePairs(layout, random);
    CHECK(pairs.size() >= 55);
    CHECK(pairs.size() <= 64);
    CHECK(NumWithin(pairs, layout.parameters[1]) == 0);
    CHECK(NumWithin(pairs, layout.parameters[3]) >= 50);
    for (const TensorSpec& parameter : layout.parameters) (void)NumWithin(pairs, parameter);
  }
}

}  // namespace
}  // namespace warpsmith
