#include "reward_service/compiler/extension_compiler.h"

#include "reward_service/compiler/toolchain.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

ExtensionCompiler MakeCompiler() { return {Toolchain{.compiler = "/usr/bin/g++", .fingerprint = "f"}, {}}; }

TEST_CASE("a key tells every argument apart, and their order and place too") {
  const ExtensionCompiler compiler = MakeCompiler();
  const ExtensionArguments base{.name = "e", .cpp_sources = {"a", "b"}, .functions = {"f"}};
  const std::string key = compiler.Key(base);
  CHECK(compiler.Key(base) == key);
  const ExtensionArguments others[] = {
      {.name = "g", .cpp_sources = {"a", "b"}, .functions = {"f"}},
      {.name = "e", .cpp_sources = {"b", "a"}, .functions = {"f"}},
      {.name = "e", .cpp_sources = {"ab"}, .functions = {"f"}},
      {.name = "e", .cpp_sources = {"a", "b", "f"}},
      {.name = "e", .cpp_sources = {"a", "b"}, .functions = {"f"}, .extra_cflags = {"-O3"}},
      {.name = "e", .cpp_sources = {"a", "b"}, .functions = {"f"}, .extra_ldflags = {"-O3"}}};
  for (const ExtensionArguments& other : others) CHECK(compiler.Key(other) != key);
}

TEST_CASE("arguments that cannot be compiled are a refused program, told in words") {
  ExtensionCompiler compiler = MakeCompiler();
  const std::atomic<bool> cancelled{false};
  const auto cuda = compiler.Compile({.name = "e", .cuda_sources = {"__global__ void k() {}"}}, cancelled);
  REQUIRE(cuda.ok());
  CHECK_FALSE(cuda->succeeded());
  CHECK(cuda->diagnostics == "error: CUDA sources need a service with a GPU\n");
  const auto flag = compiler.Compile({.name = "e", .extra_cflags = {"-fplugin=x"}}, cancelled);
  REQUIRE(flag.ok());
  CHECK(flag->diagnostics.find("error: compiler option \"-fplugin=x\" is not allowed; allowed are") == 0);
}

}  // namespace
}  // namespace warpsmith
