#include "reward_service/compiler/triton/triton_compiler.h"

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/memory_file.h"
#include "reward_service/compiler/diagnostics.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Catch::Contains;

constexpr char kKernel[] = R"(module {
  tt.func public @fill(%target: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %places = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %base = tt.splat %target : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %to = tt.addptr %base, %places : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %value = arith.constant dense<1.0> : tensor<128xf32>
    tt.store %to, %value : tensor<128x!tt.ptr<f32>>
    tt.return
  }
})";

std::string Kernels(const std::string& text) {
  return nlohmann::json::array({{{"digest", "a"},
                                 {"kernel", "fill"},
                                 {"trial", false},
                                 {"text", text},
                                 {"options", nlohmann::json::object()},
                                 {"capability", 90}}})
      .dump();
}

std::string Framed(std::string architecture, uint64_t length, const std::string& bytes) {
  architecture.resize(16);
  for (int i = 0; i < 8; ++i) architecture += static_cast<char>(length >> (8 * i));
  return architecture + bytes;
}

// Null where Python has no Triton.
std::unique_ptr<TritonCompiler> FindCompiler() {
  absl::StatusOr<TritonToolchain> toolchain = ProbeTriton(GetBuildInfo().python);
  if (!toolchain.ok()) return nullptr;
  return *TritonCompiler::Create(
      *std::move(toolchain),
      {.script = std::filesystem::absolute("reward_service/compiler/triton/compile_triton.py")});
}

TEST_CASE("a Python without Triton is told by its name and what to install") {
  const TemporaryDirectory folder;
  const auto python = folder.path() / "python";
  std::ofstream(python) << "#!/bin/sh\necho\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const absl::Status status = ProbeTriton(python).status();
  CHECK(absl::IsNotFound(status));
  CHECK_THAT(std::string(status.message()), Contains(python.string()) && Contains("no package triton"));
}

TEST_CASE("a compiler without its script is refused") {
  CHECK(absl::IsNotFound(
      TritonCompiler::Create({.python = "/usr/bin/python3", .version = "3", .read_only_paths = {}},
                             {.script = "/nowhere/compile_triton.py"})
          .status()));
}

TEST_CASE("Triton kernels are compiled in a sandbox, with their machine code beside them") {
  const auto compiler = FindCompiler();
  if (compiler == nullptr) {
    WARN("skipped: Python has no Triton");
    return;
  }
  const std::atomic<bool> cancelled = false;
  const auto program = compiler->Compile(Kernels(kKernel), cancelled);
  REQUIRE(program.ok());
  INFO(program->diagnostics);
  REQUIRE(program->succeeded());
  CHECK_THAT(program->compiler, Catch::StartsWith("Triton 3."));
  REQUIRE(program->cubins.size() == 1);
  CHECK(program->cubins[0].architecture == "sm_90a");
  CHECK_THAT(*ReadMemoryFile(program->library->get(), 1 << 24), Catch::StartsWith("WSTRITON"));
  CHECK(compiler->Key("a") != compiler->Key("b"));
}

TEST_CASE("a Triton kernel that cannot be compiled is a refused program") {
  const auto compiler = FindCompiler();
  if (compiler == nullptr) {
    WARN("skipped: Python has no Triton");
    return;
  }
  const std::atomic<bool> cancelled = false;
  for (const std::string& kernels : {Kernels("module { nonsense }"), std::string("no list")}) {
    const auto program = compiler->Compile(kernels, cancelled);
    REQUIRE(program.ok());
    CHECK_FALSE(program->succeeded());
    CHECK_THAT(FirstError(program->diagnostics), Contains("error"));
  }
}

TEST_CASE("machine code is read up to where its form is broken") {
  CHECK(ParseCubins("").empty());
  CHECK(ParseCubins("short").empty());
  const std::string two = Framed("sm_90a", 3, "abc") + Framed("sm_80", 2, "de");
  const std::vector<Cubin> cubins = ParseCubins(two);
  REQUIRE(cubins.size() == 2);
  CHECK(cubins[0].architecture == "sm_90a");
  CHECK(cubins[0].bytes == "abc");
  CHECK(cubins[1].architecture == "sm_80");
  CHECK(cubins[1].bytes == "de");
  CHECK(ParseCubins(two + Framed("sm_90a", 99, "abc")).size() == 2);
  CHECK(ParseCubins(Framed("sm_90a", ~uint64_t{0}, "abc")).empty());
  std::string many;
  for (int i = 0; i < 100; ++i) many += Framed("sm_90a", 1, "x");
  CHECK(ParseCubins(many).size() == 64);
}

}  // namespace
}  // namespace warpsmith
