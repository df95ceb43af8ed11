#include "reward_service/referee/task/draw_request.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("what a reference does not survive gives way to its own inputs, and then to its own parameters") {
  const DrawRequest request = Tamer({.style = oracle::Draw::kOutliers, .parameter_seed = 3});
  CHECK(request.style == oracle::Draw::kOwn);
  CHECK(request.parameter_seed == 3);
  CHECK(Tamer(request).parameter_seed == 0);
}

TEST_CASE("an answer has a tolerance for each output, or none is read") {
  const nlohmann::json tolerance = {{"absolute", 0.5},   {"relative", 0.25}, {"spread", 2.0},  {"reach", 8},
                                    {"outliers_max", 3}, {"bulk_max", 0.25}, {"margins", true}};
  const auto read = ReadTolerances({{"tolerances", {tolerance, tolerance}}}, 2);
  REQUIRE(read.ok());
  CHECK(read->size() == 2);
  CHECK(read->back().absolute == 0.5);
  CHECK(read->back().relative == 0.25);
  CHECK(read->back().spread == 2);
  CHECK(read->back().reach == 8);
  CHECK(read->back().outliers_max == 3);
  CHECK(read->back().outlier_error_max == 1e300);
  CHECK(read->back().bulk_max == 0.25);
  CHECK(read->back().has_margins);
  for (const nlohmann::json& wrong : {nlohmann::json::object(), nlohmann::json{{"tolerances", {tolerance}}},
                                      nlohmann::json{{"tolerances", {1, 2}}}})
    CHECK(absl::IsInvalidArgument(ReadTolerances(wrong, 2).status()));
}

}  // namespace
}  // namespace warpsmith
