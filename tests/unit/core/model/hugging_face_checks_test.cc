#include "core/model/hugging_face_checks.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/model/hugging_face_weights.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// Writes the tensors of `layout`, as zeros, after `change` had its way with them.
template <typename Change>
void WriteChanged(const std::filesystem::path& directory, const ParameterLayout& layout,
                  const Change& change) {
  std::vector<TensorInfo> tensors = HuggingFaceTensors(layout, {});
  change(tensors);
  const TensorSource zeros = [](const TensorInfo& info, const ByteSink& sink) {
    return sink(std::vector<std::byte>(TensorBytes(info).value()));
  };
  REQUIRE(WriteTensorDirectory(directory, tensors, int64_t{1} << 30, zeros).ok());
}

template <typename Change>
std::string ErrorOf(const ParameterLayout& layout, const Change& change) {
  const TemporaryDirectory directory;
  WriteChanged(directory.path(), layout, change);
  const TensorDirectory files = TensorDirectory::Open(directory.path()).value();
  return std::string(FindModelTensors(layout, files).status().message());
}

}  // namespace

TEST_CASE("the tensors of a checkpoint come in the order of the layout") {
  const ParameterLayout layout(OddConfig());
  const TemporaryDirectory directory;
  WriteChanged(directory.path(), layout, [](auto& tensors) { std::reverse(tensors.begin(), tensors.end()); });
  const TensorDirectory files = TensorDirectory::Open(directory.path()).value();
  const std::vector<const TensorView*> found = FindModelTensors(layout, files).value();
  REQUIRE(found.size() == layout.hf_tensors().size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i]->info.name == layout.hf_tensors()[i].name);
}

TEST_CASE("a checkpoint that is not the model's is refused, naming the tensor") {
  const ParameterLayout layout(OddConfig());
  CHECK(ErrorOf(layout, [](auto& tensors) { tensors.pop_back(); }) ==
        "checkpoint lacks the tensor model.norm.weight of a Qwen3ForCausalLM");
  CHECK(ErrorOf(layout, [](auto& tensors) {
          tensors.back().shape = {4, 10};
        }) == "tensor model.norm.weight has shape [4,10], but the configuration wants [40]");
  CHECK(ErrorOf(layout, [](auto& tensors) { tensors.back().type = TensorType::kI16; }) ==
        "tensor \"model.norm.weight\" is of type I16; F32, BF16 and F16 can be read");
  CHECK(ErrorOf(layout, [](auto& tensors) {
          tensors.push_back({.name = "extra", .type = TensorType::kF32, .shape = {1}});
        }) == "checkpoint has a tensor that a Qwen3ForCausalLM of 2 layers lacks: extra");
}

TEST_CASE("a head beside tied embeddings must be the embedding, in whatever type") {
  const ParameterLayout layout(OddConfig());
  // All tensors hold `rest`, the head `head`, two bytes a time.
  const auto error_of = [&](TensorType type, std::vector<int64_t> shape, uint16_t head, uint16_t rest) {
    const TemporaryDirectory directory;
    std::vector<TensorInfo> tensors = HuggingFaceTensors(layout, {});
    tensors.push_back({.name = "lm_head.weight", .type = type, .shape = std::move(shape)});
    const TensorSource filled = [&](const TensorInfo& info, const ByteSink& sink) {
      const bool is_head = info.name == "lm_head.weight";
      std::vector<uint16_t> values(TensorBytes(info).value() / 2, is_head ? head : rest);
      if (info.type == TensorType::kF32) {  // a bfloat16 with a low half of zeros
        for (size_t i = 0; i < values.size(); i += 2) values[i] = 0;
      }
      return sink(std::as_bytes(std::span(values)));
    };
    REQUIRE(WriteTensorDirectory(directory.path(), tensors, int64_t{1} << 30, filled).ok());
    const TensorDirectory files = TensorDirectory::Open(directory.path()).value();
    Parameters parameters(layout);
    const absl::Status found = FindModelTensors(layout, files).status();
    CHECK(LoadHuggingFaceWeights(directory.path(), parameters) == found);
    return std::string(found.message());
  };
  CHECK(error_of(TensorType::kF32, {101, 40}, 0x3F80, 0x3F80).empty());
  CHECK(error_of(TensorType::kBF16, {101, 40}, 0x3F80, 0x3F80).empty());
  CHECK(error_of(TensorType::kF16, {101, 40}, 0x3C00, 0x3F80).empty());
  CHECK(error_of(TensorType::kF32, {101, 40}, 0x8000, 0).empty());  // -0 is 0
  for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
    CHECK(error_of(type, {101, 40}, 0x4000, 0x3F80) ==
          "tensor lm_head.weight has other values than model.embed_tokens.weight, but config.json says "
          "tie_word_embeddings: say false there to compute with this head, or leave the tensor out");
  }
  CHECK(error_of(TensorType::kF32, {100, 40}, 0x3F80, 0x3F80) ==
        "tensor lm_head.weight has shape [100,40], but the configuration wants [101,40]");
}

TEST_CASE("a lacking head of untied embeddings is named with what config.json would have to say") {
  ModelConfig untied = OddConfig();
  untied.tie_word_embeddings = false;
  CHECK(ErrorOf(ParameterLayout(untied),
                [](auto& tensors) {
                  std::erase_if(tensors,
                                [](const TensorInfo& tensor) { return tensor.name == "lm_head.weight"; });
                }) ==
        "checkpoint lacks the tensor lm_head.weight of a Qwen3ForCausalLM; where the embedding is the head, "
        "config.json must say tie_word_embeddings");
}

}  // namespace warpsmith
