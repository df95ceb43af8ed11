#include "core/model/rope_scaling.h"

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

std::string ErrorOf(const RopeScaling& scaling, double rope_theta = 1e4) {
  return std::string(ValidateRopeScaling(scaling, rope_theta).message());
}

TEST_CASE("the text of a scaling has what its type uses") {
  CHECK(RopeScalingText({}) == "default");
  CHECK(RopeScalingText({.type = RopeType::kLinear, .factor = 2.5}) == "linear, factor 2.5");
  CHECK(RopeScalingText(Llama3Scaling()) ==
        "llama3, factor 8, original_max_position_embeddings 64, low_freq_factor 1, high_freq_factor 4");
  CHECK(RopeScalingText(YarnScaling()) ==
        "yarn, factor 4, original_max_position_embeddings 64, beta_fast 8, beta_slow 0.5, attention_factor "
        "1.13863");
}

TEST_CASE(
    "yarn's ramp lies between the pairs that turn beta_fast and beta_slow times within the first positions") {
  // 128 ln(32768 / (2 pi n)) / (2 ln 10^6) is 23.596 for n = 32 and 39.652 for n = 1.
  RopeScaling scaling{.type = RopeType::kYarn, .original_max_position_embeddings = 32768};
  CHECK(YarnRampOf(scaling, 128, 1e6).first == 23);
  CHECK(YarnRampOf(scaling, 128, 1e6).last == 40);
  scaling.truncate = false;
  CHECK(YarnRampOf(scaling, 128, 1e6).first == Approx(23.596).epsilon(1e-4));
  CHECK(YarnRampOf(scaling, 128, 1e6).last == Approx(39.652).epsilon(1e-4));
}

TEST_CASE("yarn's ramp stays within the head and never has length 0") {
  RopeScaling scaling{.type = RopeType::kYarn, .original_max_position_embeddings = 4};
  CHECK(YarnRampOf(scaling, 16, 1e4).first == 0);
  CHECK(YarnRampOf(scaling, 16, 1e4).last == 0.001);
  scaling.original_max_position_embeddings = int64_t{1} << 40;
  CHECK(YarnRampOf(scaling, 16, 2).last == 15);
}

TEST_CASE("what the formulas cannot take is refused by member, value and what is allowed") {
  CHECK(ErrorOf({.type = RopeType::kLinear, .factor = 0.5}) ==
        "model config: rope_scaling.factor is 0.5, but must be at least 1");
  RopeScaling llama3 = Llama3Scaling(), yarn = YarnScaling();
  CHECK(ErrorOf(llama3) == "");
  CHECK(ErrorOf(yarn) == "");
  CHECK(ErrorOf(yarn, 1) == "model config: rope_theta is 1, but must be over 1 for rope type yarn");
  llama3.high_freq_factor = 1;
  CHECK(ErrorOf(llama3) ==
        "model config: rope_scaling.high_freq_factor is 1, but must be over low_freq_factor, 1");
  llama3.low_freq_factor = 0;
  CHECK(ErrorOf(llama3) == "model config: rope_scaling.low_freq_factor is 0, but must be positive");
  llama3.original_max_position_embeddings = 0;
  CHECK(ErrorOf(llama3) ==
        "model config: rope_scaling.original_max_position_embeddings is 0, but must be at least 1");
  yarn.beta_fast = 0.25;
  CHECK(ErrorOf(yarn) == "model config: rope_scaling.beta_fast is 0.25, but must be at least beta_slow, 0.5");
  yarn.beta_slow = 0;
  CHECK(ErrorOf(yarn) == "model config: rope_scaling.beta_slow is 0, but must be positive");
  yarn.attention_factor = -1;
  CHECK(ErrorOf(yarn) == "model config: rope_scaling.attention_factor is -1, but must be positive");
}

}  // namespace
}  // namespace warpsmith
