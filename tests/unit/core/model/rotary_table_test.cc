#include "core/model/rotary_table.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

TEST_CASE("angles are position times theta to the power of -2i / head_dim") {
  RotaryTable<double> table(6, 1000.0);
  table.Reserve(8);
  for (int i = 0; i < 3; ++i) {
    const double angle = 7 * std::pow(1000.0, -2.0 * i / 6);
    CHECK(table.cosine(7)[i] == Approx(std::cos(angle)).epsilon(1e-14));
    CHECK(table.sine(7)[i] == Approx(std::sin(angle)).epsilon(1e-14));
  }
}

// The angles of position 1 of a head of 24.
std::vector<double> Angles(const RopeScaling& scaling) {
  RotaryTable<double> table(24, 1e4, scaling);
  table.Reserve(2);
  std::vector<double> angles;
  for (int i = 0; i < 12; ++i) angles.push_back(std::atan2(table.sine(1)[i], table.cosine(1)[i]));
  return angles;
}

TEST_CASE("linear scaling divides every angle") {
  const std::vector<double> plain = Angles({}), scaled = Angles({.type = RopeType::kLinear, .factor = 3});
  for (int i = 0; i < 12; ++i) CHECK(scaled[i] == Approx(plain[i] / 3).epsilon(1e-14));
}

TEST_CASE("llama3 and yarn keep fast pairs, divide slow ones, and mix those between in falling shares") {
  for (const RopeScaling& scaling : {Llama3Scaling(), YarnScaling()}) {
    INFO(RopeTypeName(scaling.type));
    const std::vector<double> plain = Angles({}), scaled = Angles(scaling);
    CHECK(scaled[0] == Approx(plain[0]).epsilon(1e-14));
    CHECK(scaled[11] == Approx(plain[11] / scaling.factor).epsilon(1e-14));
    int num_between = 0;
    for (int i = 0; i < 12; ++i) {
      const double ratio = scaled[i] / plain[i];
      CHECK(ratio <= (i == 0 ? 1 : scaled[i - 1] / plain[i - 1]) + 1e-12);
      num_between += ratio < 1 - 1e-9 && ratio > 1 / scaling.factor + 1e-9 ? 1 : 0;
    }
    CHECK(num_between >= 2);
  }
}

TEST_CASE("yarn lengthens cosines and sines") {
  RotaryTable<double> table(24, 1e4, YarnScaling());
  table.Reserve(10);
  CHECK(std::hypot(table.cosine(9)[3], table.sine(9)[3]) == Approx(YarnScaling().attention_factor));
}

TEST_CASE("rows stay the same when the table grows") {
  RotaryTable<float> grown(8, 1e4), whole(8, 1e4);
  grown.Reserve(3);
  grown.Reserve(200);
  whole.Reserve(200);
  for (int position = 0; position < 200; ++position) {
    for (int i = 0; i < 4; ++i) CHECK(grown.cosine(position)[i] == whole.cosine(position)[i]);
  }
}

}  // namespace
}  // namespace warpsmith
