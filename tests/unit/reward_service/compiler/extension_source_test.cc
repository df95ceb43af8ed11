#include "reward_service/compiler/extension_source.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("named functions are bound, and the candidate's lines keep their numbers") {
  const absl::StatusOr<ExtensionSources> sources = SourcesOf(
      {.name = "ext", .cpp_sources = {"torch::Tensor f(torch::Tensor x) { return x; }"}, .functions = {"f"}});
  REQUIRE(sources.ok());
  CHECK(sources->cpp ==
        "#include <torch/extension.h>\n#line 1\ntorch::Tensor f(torch::Tensor x) { return x; }\n"
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\nm.def(\"f\", torch::wrap_pybind_function(f), "
        "\"f\");\n}\n");
  CHECK(sources->cuda.empty());
}

TEST_CASE("sources with a module of their own get none") {
  const auto sources =
      SourcesOf({.name = "ext", .cpp_sources = {"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"}});
  CHECK(sources->cpp.find("m.def") == std::string::npos);
}

TEST_CASE("CUDA sources are a half of their own, with lines that keep their numbers") {
  const auto sources = SourcesOf({.name = "e", .cuda_sources = {"__global__ void k() {}", "int b;"}});
  REQUIRE(sources.ok());
  CHECK(sources->cuda ==
        "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n#line 1 \"cuda.cu\"\n"
        "__global__ void k() {}\nint b;\n");
  CHECK(sources->cpp.find("__global__") == std::string::npos);
  CHECK(SourcesOf({.name = "e", .cuda_sources = {""}})->cuda.empty());
}

TEST_CASE("names that are none are refused") {
  CHECK(absl::IsInvalidArgument(SourcesOf({.name = "e", .functions = {"f); system(\"id\""}}).status()));
  CHECK(absl::IsInvalidArgument(SourcesOf({.name = "e", .functions = {"1f"}}).status()));
  CHECK(SourcesOf({.name = "e", .functions = {"deep::f"}}).ok());
}

}  // namespace
}  // namespace warpsmith
