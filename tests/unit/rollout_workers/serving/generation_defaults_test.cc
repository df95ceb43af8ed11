#include "rollout_workers/serving/generation_defaults.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith::serving {
namespace {

using Names = std::vector<std::string>;

absl::StatusOr<GenerationDefaults> Read(const std::string& generation_config) {
  const TemporaryDirectory folder;
  REQUIRE(WriteFileAtomically(folder.path() / "generation_config.json", generation_config).ok());
  return ReadGenerationDefaults(folder.path());
}

}  // namespace

TEST_CASE("a folder without generation_config.json has the defaults of the API") {
  const TemporaryDirectory folder;
  const GenerationDefaults defaults = ReadGenerationDefaults(folder.path()).value();
  CHECK(defaults.sampling.temperature == 1);
  CHECK(defaults.not_applied.empty());
}

TEST_CASE("the four keys that are applied are read, and null is absent") {
  const GenerationDefaults defaults =
      Read(R"({"temperature": 0.6, "top_p": 0.9, "top_k": -1, "min_p": null, "do_sample": true,
               "eos_token_id": [2, 0], "pad_token_id": 0, "transformers_version": "5.0.0"})")
          .value();
  CHECK(defaults.sampling.temperature == 0.6);
  CHECK(defaults.sampling.top_p == 0.9);
  CHECK(defaults.sampling.top_k == 0);
  CHECK(defaults.sampling.min_p == 0);
  CHECK(defaults.not_applied.empty());
}

TEST_CASE("every key that would change answers and is not applied is named with its value") {
  CHECK(Read(R"({"repetition_penalty": 1.05, "top_k": 20})")->not_applied ==
        Names{"repetition_penalty 1.05"});
  CHECK(Read(R"({"no_repeat_ngram_size": 3, "min_length": 5, "suppress_tokens": [7], "num_beams": 4,
                 "typical_p": 0.9, "do_sample": false, "forced_eos_token_id": 0, "of_tomorrow": {"a": 1}})")
            ->not_applied == Names{"do_sample false", "forced_eos_token_id 0", "min_length 5",
                                   "no_repeat_ngram_size 3", "num_beams 4", "of_tomorrow {\"a\":1}",
                                   "suppress_tokens [7]", "typical_p 0.9"});
}

TEST_CASE("keys that are switched off, as transformers once wrote them all, are not named") {
  CHECK(
      Read(
          R"({"repetition_penalty": 1.0, "length_penalty": 1, "typical_p": 1.0, "num_beams": 1, "min_length": 0,
                 "no_repeat_ngram_size": 0, "early_stopping": false, "bad_words_ids": null, "suppress_tokens": [],
                 "diversity_penalty": 0.0, "sequence_bias": {}, "renormalize_logits": false, "use_cache": true})")
          ->not_applied.empty());
}

TEST_CASE("a key that is applied and is no number, and what is no object, are refused") {
  CHECK_THAT(std::string(Read(R"({"temperature": "0.6"})").status().message()),
             Catch::Contains("generation_config.json: temperature is \"0.6\", but must be a number"));
  CHECK_THAT(std::string(Read(R"({"top_p": 2})").status().message()), Catch::Contains("top_p is 2"));
  CHECK(absl::IsInvalidArgument(Read("[]").status()));
}

}  // namespace warpsmith::serving
