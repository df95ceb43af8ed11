#include "trainer/run_folder/source_model.h"

#include <string>

#include "core/base/file.h"
#include "core/checkpoint/tensor_directory.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

void Write(const TemporaryDirectory& directory, const char* name, const std::string& text) {
  REQUIRE(WriteFileAtomically(directory.path() / name, text).ok());
}

}  // namespace

TEST_CASE("a checkpoint's files are kept as they are, with the type of each tensor") {
  const TemporaryDirectory directory;
  Write(directory, "config.json", "{\"any\": 1}");
  Write(directory, "generation_config.json", "{\"eos_token_id\": [5, 4]}");
  Parameters parameters{ParameterLayout(OddConfig())};
  REQUIRE(WriteTensorDirectory(
              directory.path(),
              HuggingFaceTensors(parameters.layout(), {{"model.norm.weight", TensorType::kBF16}}), 1 << 20,
              HuggingFaceSource(parameters))
              .ok());
  const SourceModel source = ReadSourceModel(directory.path(), OddConfig()).value();
  CHECK(source.config_json == "{\"any\": 1}");
  CHECK(source.generation_config_json == "{\"eos_token_id\": [5, 4]}");
  CHECK(source.stop_token_ids == TokenIds{5, 4});
  CHECK(source.tensor_types.at("model.norm.weight") == TensorType::kBF16);
  CHECK(source.tensor_types.at("model.embed_tokens.weight") == TensorType::kF32);
}

TEST_CASE("random weights have a configuration of ours and no types of their own") {
  const SourceModel source = ReadSourceModel("", OddConfig()).value();
  CHECK(ParseModelConfig(source.config_json).value() == OddConfig());
  CHECK(source.generation_config_json.empty());
  CHECK(source.stop_token_ids.empty());
  CHECK(source.tensor_types.empty());
}

TEST_CASE(
    "a checkpoint without weights or with a broken configuration is refused before anything is trained") {
  const TemporaryDirectory directory;
  CHECK(absl::IsNotFound(ReadSourceModel(directory.path(), OddConfig()).status()));
  Write(directory, "config.json", "{}");
  CHECK(absl::IsNotFound(ReadSourceModel(directory.path(), OddConfig()).status()));
  Write(directory, "generation_config.json", "[]");
  CHECK(absl::IsInvalidArgument(ReadSourceModel(directory.path(), OddConfig()).status()));
}

}  // namespace warpsmith
