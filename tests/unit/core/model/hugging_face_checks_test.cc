#include "core/model/hugging_face_checks.h"

#include <string>

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

TEST_CASE("a head beside tied embeddings is allowed") {
  const ParameterLayout layout(OddConfig());
  CHECK(ErrorOf(layout, [](auto& tensors) {
          tensors.push_back({.name = "lm_head.weight", .type = TensorType::kF32, .shape = {101, 40}});
        }).empty());
}

}  // namespace warpsmith
