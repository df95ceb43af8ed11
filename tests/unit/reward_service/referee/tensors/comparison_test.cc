#include "reward_service/referee/tensors/comparison.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TensorSpec Spec(int code, int bits, std::vector<int64_t> shape) {
  TensorSpec spec;
  spec.code = code;
  spec.bits = bits;
  spec.shape = std::move(shape);
  spec.num_elements = 1;
  for (const int64_t extent : spec.shape) spec.num_elements *= extent;
  spec.num_bytes = spec.num_elements * bits / 8;
  return spec;
}

const Tolerance kTolerance = {.absolute = 0.01};

// A word of comparison.h for each of these margins; those below 0 are left out of the mean.
std::vector<uint32_t> Words(const std::vector<float>& margins) {
  std::vector<uint32_t> words;
  for (const float margin : margins) words.push_back(std::bit_cast<uint32_t>(margin) & 0xFFFF0000u);
  return words;
}

template <typename Value>
Comparison CompareAs(const TensorSpec& spec, const Tolerance& tolerance, const std::vector<Value>& expected,
                     const std::vector<Value>& actual) {
  return Compare(spec, tolerance, {.elements = expected.data()}, actual.data());
}

TEST_CASE("floats within the tolerance are right and the largest error is told") {
  const std::vector<float> expected = {1, 2, 3, 4};
  const std::vector<float> actual = {1.005f, 2, 3, 4};
  const TensorSpec spec = Spec(2, 32, {2, 2});
  const Comparison result = CompareAs(spec, kTolerance, expected, actual);
  CHECK(result.right());
  CHECK(result.max_absolute_error == Approx(0.005).epsilon(0.01));
}

TEST_CASE("the first difference names output index, value and expectation") {
  const std::vector<float> expected = {1, 2, 3, 4};
  const std::vector<float> actual = {1, 2, 0.25f, 9};
  const TensorSpec spec = Spec(2, 32, {2, 2});
  const Comparison result = CompareAs(spec, kTolerance, expected, actual);
  CHECK(result.num_wrong == 2);
  CHECK(result.first_difference == "[1, 0]: 0.25, expected 3");
}

TEST_CASE("numbers that look the same are told with all their digits") {
  const Comparison result = CompareAs<double>(Spec(2, 64, {1}), {}, {1}, {1 + 0x1p-30});
  CHECK(result.first_difference == "[0]: 1.0000000009313226, expected 1");
}

TEST_CASE("NaN and infinity are wrong and counted as not finite") {
  const std::vector<float> expected = {1, 2};
  const std::vector<float> actual = {std::nanf(""), std::numeric_limits<float>::infinity()};
  const TensorSpec spec = Spec(2, 32, {2});
  const Comparison result = CompareAs(spec, kTolerance, expected, actual);
  CHECK(result.num_non_finite == 2);
  CHECK(result.num_unwritten == 0);
}

TEST_CASE("poison is told from other NaN in every floating-point dtype") {
  for (const auto& [code, bits] : std::vector<std::pair<int, int>>{{2, 16}, {4, 16}, {2, 32}, {2, 64}}) {
    const TensorSpec spec = Spec(code, bits, {3});
    const std::vector<unsigned char> expected(static_cast<size_t>(spec.num_bytes), 0);
    const std::vector<unsigned char> actual(static_cast<size_t>(spec.num_bytes), kPoisonByte);
    const Comparison result = CompareAs(spec, kTolerance, expected, actual);
    CHECK(result.num_unwritten == 3);
    CHECK(result.num_non_finite == 0);
  }
}

TEST_CASE("memory that is not written is right for no float, and for no integer in each call") {
  for (const auto& [code, bits] : std::vector<std::pair<int, int>>{{2, 16}, {4, 16}, {2, 32}, {2, 64}})
    CHECK(PoisonByteOf(Spec(code, bits, {3}), 7) == kPoisonByte);
  for (const auto& [code, bits] :
       std::vector<std::pair<int, int>>{{0, 8}, {0, 32}, {0, 64}, {1, 8}, {6, 8}}) {
    std::set<unsigned char> seen;
    for (uint64_t lot = 0; lot < 1000; ++lot) seen.insert(PoisonByteOf(Spec(code, bits, {3}), lot));
    CHECK(seen.size() > 100);
    CHECK(*seen.begin() > 1);      // true and false, and the least of other integers
    CHECK(*seen.rbegin() < 0xFF);  // -1
  }
}

TEST_CASE("half precision values are read exactly") {
  // 1.5, the smallest subnormal, -2 in binary16; 1.5 and -2 in bfloat16.
  const std::vector<uint16_t> half = {0x3E00, 0x0001, 0xC000};
  const std::vector<uint16_t> zero = {0, 0, 0};
  const TensorSpec spec = Spec(2, 16, {3});
  CHECK(CompareAs(spec, kTolerance, zero, half).max_absolute_error == 2);
  CHECK(CompareAs(spec, kTolerance, zero, half).num_wrong == 2);
  const std::vector<uint16_t> brain = {0x3FC0, 0xC000};
  const Comparison result = CompareAs(Spec(4, 16, {2}), kTolerance, {0, 0}, brain);
  CHECK(result.first_difference == "[0]: 1.5, expected 0");
}

TEST_CASE("integers and booleans must be equal") {
  const std::vector<int64_t> expected = {1, -5};
  const std::vector<int64_t> actual = {1, -4};
  const Comparison result = CompareAs(Spec(0, 64, {2}), {}, expected, actual);
  CHECK(result.num_wrong == 1);
  CHECK(result.first_difference == "[1]: -4, expected -5");
}

TEST_CASE("the relative part of a margin grows with the element") {
  const TensorSpec spec = Spec(2, 32, {2});
  const Tolerance tolerance = {.absolute = 0.01, .relative = 0.001};
  CHECK(CompareAs<float>(spec, tolerance, {1, 100}, {1.005f, 100.1f}).right());
  CHECK(CompareAs<float>(spec, tolerance, {1, 100}, {1.02f, 100.1f}).num_wrong == 1);
}

TEST_CASE("an element has a margin of its own, and an outlier is one beyond its reach") {
  const std::vector<float> expected = {1, 1}, actual = {1.5f, 1.5f};
  const std::vector<uint32_t> words = Words({0.25f, 0.5f});
  const auto wrong = [&](double reach) {
    return Compare(Spec(2, 32, {2}), {.reach = reach, .has_margins = true}, {expected.data(), words.data()},
                   actual.data());
  };
  CHECK(wrong(1).num_wrong == 1);
  CHECK(wrong(1).first_outlier == 0);
  CHECK(wrong(1).first_difference == "[0]: 1.5, expected 1");
  CHECK(wrong(2).right());
}

TEST_CASE("as many outliers are right as may be, none of them too large or no number") {
  const std::vector<float> expected(8, 0), margin(8, 1);
  const std::vector<uint32_t> words = Words(margin);
  const Tolerance tolerance = {.outliers_max = 1, .outlier_error_max = 3, .has_margins = true};
  const auto compare = [&](const std::vector<float>& actual) {
    return Compare(Spec(2, 32, {8}), tolerance, {expected.data(), words.data()}, actual.data());
  };
  const Comparison right = compare({0, 0, 2, 0, 0, 0, 0, 0});
  CHECK(right.right());
  CHECK(right.first_outlier == 2);
  CHECK(compare({0, 0, 2, 0, 0, 0, 0, 2}).num_wrong == 2);
  CHECK(compare({0, 0, 4, 0, 0, 0, 0, 0}).num_wrong == 1);
  CHECK(compare({0, 0, std::nanf(""), 0, 0, 0, 0, 0}).num_non_finite == 1);
}

TEST_CASE("errors within all margins are wrong where their mean square is too large") {
  const std::vector<float> expected(4, 0), actual = {0.5f, 0.5f, 0.125f, 0.9f};
  const auto compare = [&](const std::vector<float>& margins, double bulk_max) {
    const std::vector<uint32_t> words = Words(margins);
    return Compare(Spec(2, 32, {4}), {.bulk_max = bulk_max, .has_margins = true},
                   {expected.data(), words.data()}, actual.data());
  };
  CHECK(compare({1, 1, 1, -1}, 0.25).right());
  const Comparison wrong = compare({1, 1, 1, -1}, 0.125);
  CHECK(wrong.num_wrong == 2);
  CHECK(wrong.first_outlier == -1);
  CHECK(wrong.first_difference == "[0]: 0.5, expected 0");
  CHECK_FALSE(compare({1, 1, 1, 1}, 0.25).right());
}

TEST_CASE("what a dtype rounds off the expected number is in the margin's word") {
  const std::vector<uint16_t> expected = {0x3F80}, one = {0x3F80}, next = {0x3F81};  // 1 and 1 + 2^-7
  const std::vector<uint32_t> words = {0x3B000000u | 0x4000u};  // of 1 + 2^-9 / 16 a margin of 2^-9
  const auto right = [&](const std::vector<uint16_t>& actual, double bulk_max) {
    return Compare(Spec(4, 16, {1}), {.bulk_max = bulk_max, .has_margins = true},
                   {expected.data(), words.data()}, actual.data())
        .right();
  };
  CHECK(right(one, 0x1p-8));
  CHECK_FALSE(right(one, 0x1p-9));
  CHECK_FALSE(right(next, 1));
}

TEST_CASE("integers may be off as far as their margins say, and have signs") {
  const std::vector<int8_t> expected = {-1, 0, 127};
  const std::vector<uint32_t> words = Words({-1, -0.0f, -1});
  const auto wrong = [&](const std::vector<int8_t>& actual) {
    return Compare(Spec(0, 8, {3}), {.has_margins = true}, {expected.data(), words.data()}, actual.data())
        .num_wrong;
  };
  CHECK(wrong({0, 0, 126}) == 0);
  CHECK(wrong({1, 0, 127}) == 1);
  CHECK(wrong({-1, 1, 127}) == 1);
  const int64_t large = int64_t{1} << 60;
  CHECK(CompareAs<int64_t>(Spec(0, 64, {1}), {}, {large}, {large + 1}).num_wrong == 1);
}

TEST_CASE("an empty output is right") {
  CHECK(Compare(Spec(2, 32, {0, 4}), kTolerance, {}, nullptr).right());
}

}  // namespace
}  // namespace warpsmith
