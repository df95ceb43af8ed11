#include "reward_service/referee/tensors/comparison.h"

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

const Tolerance kTolerance = {.absolute = 0.01, .relative = 0, .rounding = 0, .centre = 0, .spread = 1};

TEST_CASE("floats within the tolerance are right and the largest error is told") {
  const std::vector<float> expected = {1, 2, 3, 4};
  const std::vector<float> actual = {1.005f, 2, 3, 4};
  const TensorSpec spec = Spec(2, 32, {2, 2});
  const Comparison result = Compare(spec, kTolerance, expected.data(), actual.data());
  CHECK(result.right());
  CHECK(result.max_absolute_error == Approx(0.005).epsilon(0.01));
  CHECK(AllRight(spec, kTolerance, expected.data(), actual.data()));
}

TEST_CASE("the first difference names output index, value and expectation") {
  const std::vector<float> expected = {1, 2, 3, 4};
  const std::vector<float> actual = {1, 2, 0.25f, 9};
  const TensorSpec spec = Spec(2, 32, {2, 2});
  const Comparison result = Compare(spec, kTolerance, expected.data(), actual.data());
  CHECK(result.num_wrong == 2);
  CHECK(result.first_difference == "[1, 0]: 0.25, expected 3");
  CHECK_FALSE(AllRight(spec, kTolerance, expected.data(), actual.data()));
}

TEST_CASE("NaN and infinity are wrong and counted as not finite") {
  const std::vector<float> expected = {1, 2};
  const std::vector<float> actual = {std::nanf(""), std::numeric_limits<float>::infinity()};
  const TensorSpec spec = Spec(2, 32, {2});
  const Comparison result = Compare(spec, kTolerance, expected.data(), actual.data());
  CHECK(result.num_non_finite == 2);
  CHECK(result.num_unwritten == 0);
  CHECK_FALSE(AllRight(spec, kTolerance, expected.data(), actual.data()));
}

TEST_CASE("poison is told from other NaN in every floating-point dtype") {
  for (const auto& [code, bits] : std::vector<std::pair<int, int>>{{2, 16}, {4, 16}, {2, 32}, {2, 64}}) {
    const TensorSpec spec = Spec(code, bits, {3});
    const std::vector<char> expected(static_cast<size_t>(spec.num_bytes), 0);
    const std::vector<unsigned char> actual(static_cast<size_t>(spec.num_bytes), kPoisonByte);
    const Comparison result = Compare(spec, kTolerance, expected.data(), actual.data());
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
  CHECK(Compare(spec, kTolerance, zero.data(), half.data()).max_absolute_error == 2);
  CHECK(Compare(spec, kTolerance, zero.data(), half.data()).num_wrong == 2);
  const std::vector<uint16_t> brain = {0x3FC0, 0xC000};
  const Comparison result = Compare(Spec(4, 16, {2}), kTolerance, zero.data(), brain.data());
  CHECK(result.first_difference == "[0]: 1.5, expected 0");
}

TEST_CASE("integers and booleans must be equal") {
  const std::vector<int64_t> expected = {1, -5};
  const std::vector<int64_t> actual = {1, -4};
  const Comparison result = Compare(Spec(0, 64, {2}), kTolerance, expected.data(), actual.data());
  CHECK(result.num_wrong == 1);
  CHECK(result.first_difference == "[1]: -4, expected -5");
}

TEST_CASE("the relative part of a tolerance is measured from the centre, not from zero") {
  const Tolerance tolerance = {.absolute = 0, .relative = 0.01, .rounding = 0, .centre = 100, .spread = 1};
  const std::vector<float> expected = {100.5f};
  const std::vector<float> actual = {100.4f};  // 0.1 off, 1 % of 0.5 is allowed
  CHECK_FALSE(AllRight(Spec(2, 32, {1}), tolerance, expected.data(), actual.data()));
}

TEST_CASE("the fast and the telling comparison agree over many elements") {
  std::vector<float> expected(40000), actual(40000);
  for (size_t i = 0; i < expected.size(); ++i) actual[i] = expected[i] = static_cast<float>(i % 97);
  const TensorSpec spec = Spec(2, 32, {40000});
  CHECK(AllRight(spec, kTolerance, expected.data(), actual.data()));
  for (const size_t bad : {size_t{0}, size_t{16383}, size_t{16384}, size_t{39999}}) {
    const float kept = actual[bad];
    actual[bad] += 1;
    CHECK_FALSE(AllRight(spec, kTolerance, expected.data(), actual.data()));
    CHECK(Compare(spec, kTolerance, expected.data(), actual.data()).num_wrong == 1);
    actual[bad] = kept;
  }
}

TEST_CASE("an empty output is right") {
  CHECK(Compare(Spec(2, 32, {0, 4}), kTolerance, nullptr, nullptr).right());
}

}  // namespace
}  // namespace warpsmith
