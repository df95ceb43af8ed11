#include "reward_service/compiler/extension_source.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("named functions are bound, and the candidate's lines keep their numbers") {
  const absl::StatusOr<std::string> source = ExtensionSource(
      {.name = "ext", .cpp_sources = {"torch::Tensor f(torch::Tensor x) { return x; }"}, .functions = {"f"}});
  REQUIRE(source.ok());
  CHECK(*source ==
        "#include <torch/extension.h>\n#line 1\ntorch::Tensor f(torch::Tensor x) { return x; }\n"
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\nm.def(\"f\", torch::wrap_pybind_function(f), "
        "\"f\");\n}\n");
}

TEST_CASE("sources with a module of their own get none") {
  const auto source =
      ExtensionSource({.name = "ext", .cpp_sources = {"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"}});
  CHECK(source->find("m.def") == std::string::npos);
}

TEST_CASE("CUDA sources and names that are none are refused") {
  CHECK(absl::IsInvalidArgument(
      ExtensionSource({.name = "e", .cuda_sources = {"__global__ void k() {}"}}).status()));
  CHECK(ExtensionSource({.name = "e", .cuda_sources = {""}}).ok());
  CHECK(absl::IsInvalidArgument(ExtensionSource({.name = "e", .functions = {"f); system(\"id\""}}).status()));
  CHECK(absl::IsInvalidArgument(ExtensionSource({.name = "e", .functions = {"1f"}}).status()));
  CHECK(ExtensionSource({.name = "e", .functions = {"deep::f"}}).ok());
}

}  // namespace
}  // namespace warpsmith
