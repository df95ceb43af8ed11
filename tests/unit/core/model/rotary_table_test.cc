#include "core/model/rotary_table.h"

#include <cmath>

#include "tests/support/catch.h"

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
