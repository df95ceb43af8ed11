#include "rollout_workers/hugging_face_weights.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_directory.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

ModelConfig Tiny() {
  return {.vocab_size = 97,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 1,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 512,
          .tie_word_embeddings = true};
}

// Random weights of `seed` as a Hugging Face directory, without the tensor `left_out`.
void WriteDirectory(const std::filesystem::path& directory, uint64_t seed, const std::string& left_out = "") {
  Parameters parameters{ParameterLayout(Tiny())};
  parameters.InitRandom(seed);
  std::map<std::string, at::Tensor> tensors = parameters.ToHf(at::kFloat);
  tensors.erase(left_out);
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : tensors) infos.push_back({.name = name, .shape = tensor.sizes().vec()});
  const auto source = [&](const TensorInfo& info, const ByteSink& sink) {
    const at::Tensor& tensor = tensors.at(info.name);
    return sink({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
  };
  REQUIRE(WriteTensorDirectory(directory, infos, 4096, source).ok());
}

}  // namespace

TEST_CASE("weights come back from a sharded Hugging Face directory to the bit, as version 0") {
  const TemporaryDirectory directory;
  WriteDirectory(directory.path(), 5);
  const LoadedWeights loaded = HuggingFaceWeights(Tiny(), directory.path()).value();
  CHECK(loaded.policy_version == 0);
  CHECK(loaded.sha256 == RandomWeights(Tiny(), 5).sha256);
}

TEST_CASE("a directory without weights, a lacking tensor and another model's are errors") {
  const TemporaryDirectory empty, lacking, other;
  CHECK(absl::IsNotFound(HuggingFaceWeights(Tiny(), empty.path()).status()));
  WriteDirectory(lacking.path(), 5, "model.norm.weight");
  const absl::Status status = HuggingFaceWeights(Tiny(), lacking.path()).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("model.norm.weight"));
  WriteDirectory(other.path(), 5);
  ModelConfig larger = Tiny();
  larger.hidden_size = 64;
  CHECK(absl::IsInvalidArgument(HuggingFaceWeights(larger, other.path()).status()));
}

}  // namespace warpsmith
