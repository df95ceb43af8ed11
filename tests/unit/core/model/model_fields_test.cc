#include "core/model/model_fields.h"

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {

TEST_CASE("every number of a model that changes its logits is a field, with the least change of it") {
  const ModelConfig config = WithHeads(OddConfig(), 4, 2, 16);
  CHECK(DifferingFields(FieldsOf(config), FieldsOf(config)).empty());
  ModelConfig theta = config, epsilon = config, scaled = config, heads = WithHeads(config, 8, 4, 8);
  theta.rope_theta = 10000.0000000001;
  epsilon.rms_norm_eps = 1e-5;
  scaled.rope_scaling = YarnScaling();
  scaled.rope_scaling.beta_fast = 31;
  CHECK(DifferingFields(FieldsOf(theta), FieldsOf(config)) == "rope_theta is 10000.0000000001, not 10000.0");
  CHECK(DifferingFields(FieldsOf(epsilon), FieldsOf(config)) == "rms_norm_eps is 1e-05, not 1e-06");
  CHECK_THAT(DifferingFields(FieldsOf(scaled), FieldsOf(config)),
             Catch::StartsWith(R"(rope_scaling is {"rope_type":"yarn",)") && Catch::EndsWith(", not null"));
  ModelConfig nearly = scaled;
  nearly.rope_scaling.factor += 1e-9;
  CHECK(!DifferingFields(FieldsOf(nearly), FieldsOf(scaled)).empty());
  CHECK_THAT(DifferingFields(FieldsOf(heads), FieldsOf(config)),
             Catch::Contains("num_attention_heads is 8, not 4") && Catch::Contains("head_dim is 8, not 16"));
}

TEST_CASE("longer contexts change no logit, and a field that an older program lacks is not compared") {
  ModelConfig longer = OddConfig();
  longer.max_position_embeddings *= 2;
  CHECK(DifferingFields(FieldsOf(longer), FieldsOf(OddConfig())).empty());
  CHECK(DifferingFields({}, FieldsOf(OddConfig())).empty());
  CHECK(DifferingFields({{"of a later program", "1"}}, FieldsOf(OddConfig())).empty());
}

}  // namespace warpsmith
