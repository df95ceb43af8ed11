#include "reward_service/compiler/extension_compiler.h"

#include <sys/stat.h>

#include <filesystem>

#include "core/base/file.h"
#include "reward_service/compiler/toolchain.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

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

TEST_CASE("a key with CUDA sources tells flags, architectures and compilers of theirs apart, others do not") {
  const auto key = [](const ExtensionArguments& arguments, const char* fingerprint,
                      const char* architecture) {
    ExtensionCompilerOptions options;
    options.cuda = CudaTarget{{.fingerprint = fingerprint}, {architecture}};
    return ExtensionCompiler(Toolchain{.compiler = "/usr/bin/g++", .fingerprint = "f"}, options)
        .Key(arguments);
  };
  const ExtensionArguments cpp{.name = "e", .cpp_sources = {"a"}};
  CHECK(key(cpp, "n", "sm_90a") == MakeCompiler().Key(cpp));
  const ExtensionArguments cuda{.name = "e", .cpp_sources = {"a"}, .cuda_sources = {"b"}};
  const ExtensionArguments faster{
      .name = "e", .cpp_sources = {"a"}, .cuda_sources = {"b"}, .extra_cuda_cflags = {"-O3"}};
  const std::string first = key(cuda, "n", "sm_90a");
  CHECK(key(cuda, "n", "sm_90a") == first);
  CHECK(key(cuda, "m", "sm_90a") != first);
  CHECK(key(cuda, "n", "sm_80") != first);
  CHECK(key(faster, "n", "sm_90a") != first);
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
  const auto library = compiler.Compile({.name = "e", .extra_ldflags = {"-lcublas"}}, cancelled);
  REQUIRE(library.ok());
  CHECK(library->diagnostics ==
        "error: linker option \"-lcublas\" needs with_cuda=True and a service with a GPU\n");
}

// A compiler that finds after a while that a name is missing, on each tier.
TEST_CASE("all tiers of headers share one limit of time") {
  const TemporaryDirectory facade;
  const std::filesystem::path slow = facade.path() / "slow";
  REQUIRE(WriteFileAtomically(
              slow,
              "#!/bin/sh\nsleep 0.3\n"
              "echo \"candidate.cc:1:1: error: 'x' was not declared in this scope\" >&2\nexit 1\n")
              .ok());
  for (const std::filesystem::path& path : {facade.path(), slow}) {
    REQUIRE(chmod(path.c_str(), 0755) == 0);  // those who run there are others
  }
  for (const char* folder : {"stubs", "include"}) std::filesystem::create_directory(facade.path() / folder);
  ExtensionCompilerOptions options{.places = {.torch_dir = facade.path(), .facade_directory = facade.path()}};
  options.limits.wall_seconds_max = 0.5;
  ExtensionCompiler compiler(Toolchain{.compiler = slow}, options);
  const std::atomic<bool> cancelled{false};
  const auto program =
      compiler.Compile({.name = "e", .cpp_sources = {"x"}, .extra_cflags = {"-g"}}, cancelled);
  REQUIRE(program.ok());
  CHECK_FALSE(program->succeeded());
  INFO(program->diagnostics);
  CHECK(program->diagnostics.find("error: compilation exceeded its wall time") == 0);
}

}  // namespace
}  // namespace warpsmith
