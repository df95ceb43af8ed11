#include "core/model/rope_scaling_json.h"

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

absl::StatusOr<RopeScaling> Parse(const char* text) { return ParseRopeScaling(Json::parse(text), 4096); }

std::string ErrorOf(const char* text) { return std::string(Parse(text).status().message()); }

TEST_CASE("a written scaling is read back unchanged") {
  RopeScaling untruncated = YarnScaling();
  untruncated.truncate = false;
  for (const RopeScaling& scaling :
       {RopeScaling{.type = RopeType::kLinear, .factor = 2.5}, Llama3Scaling(), YarnScaling(), untruncated}) {
    INFO(RopeTypeName(scaling.type));
    CHECK(ParseRopeScaling(Json::parse(RopeScalingJson(scaling).dump()), 7).value() == scaling);
  }
  CHECK(RopeScalingJson({}).is_null());
}

TEST_CASE("Qwen's and Llama's own spellings are understood") {
  const RopeScaling qwen =
      Parse(R"({"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"})").value();
  CHECK(qwen.type == RopeType::kYarn);
  CHECK(qwen.original_max_position_embeddings == 32768);
  CHECK(qwen.attention_factor == Approx(1.1386294361));
  const RopeScaling llama = Parse(R"({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192, "rope_type": "llama3"})")
                                .value();
  CHECK(llama.type == RopeType::kLlama3);
  CHECK(llama.high_freq_factor == 4);
}

TEST_CASE("what may be left out has transformers' defaults") {
  CHECK(Parse("{}").value() == RopeScaling{});
  const RopeScaling yarn = Parse(R"({"rope_type": "yarn", "factor": 2})").value();
  CHECK(yarn.original_max_position_embeddings == 4096);
  CHECK(yarn.beta_fast == 32);
  CHECK(yarn.beta_slow == 1);
  CHECK(yarn.truncate);
  CHECK(Parse(R"({"rope_type": "yarn", "factor": 40, "mscale": 0.7, "mscale_all_dim": 1.4})")
            .value()
            .attention_factor == Approx((0.07 * std::log(40) + 1) / (0.14 * std::log(40) + 1)));
  CHECK(Parse(R"({"rope_type": "yarn", "factor": 2, "attention_factor": 0.5})").value().attention_factor ==
        0.5);
}

TEST_CASE("other types, other forms and missing members are refused by name") {
  CHECK(ErrorOf(R"({"rope_type": "dynamic", "factor": 2})") ==
        "model config: rope_scaling.rope_type is \"dynamic\", but must be default, linear, llama3 or yarn: "
        "nothing "
        "else is implemented");
  CHECK_THAT(ErrorOf(R"({"type": "longrope"})"), Catch::Contains("rope_scaling.type is \"longrope\""));
  CHECK_THAT(ErrorOf(R"({"factor": 2})"), Catch::Contains("rope_scaling.rope_type is null"));
  CHECK_THAT(ErrorOf(R"({"rope_type": 3})"), Catch::Contains("rope_scaling.rope_type is 3"));
  CHECK_THAT(ErrorOf(R"({"full_attention": {"rope_type": "yarn"}})"), Catch::Contains("one for all layers"));
  CHECK_THAT(ErrorOf("[]"), Catch::Contains("rope_scaling is [], but must be an object"));
  CHECK(ErrorOf(R"({"rope_type": "linear"})") == "model config: factor is missing, but must be given");
  CHECK(ErrorOf(R"({"rope_type": "yarn", "factor": "4"})") ==
        "model config: factor is \"4\", but must be a number");
  CHECK_THAT(ErrorOf(R"({"rope_type": "llama3", "factor": 8})"),
             Catch::Contains("low_freq_factor is missing"));
  CHECK_THAT(ErrorOf(R"({"rope_type": "yarn", "factor": 4, "truncate": 1})"),
             Catch::Contains("truncate is 1, but must be a boolean"));
}

}  // namespace
}  // namespace warpsmith
