// How long the service's compilers take for CUDA programs, nothing compiled before; for cuda_compile_bench.py.
//
// Reads programs from --programs, a JSON object a line: {"name", "source"} of a native one, {"name", "cpp_sources",
// "cuda_sources", "functions", "extra_cuda_cflags"} of a call of load_inline. Compiles each once, --at-once at a
// time, in the sandbox, and prints a line for each: {"name", "seconds", "succeeded", "headers", "compiler", "error"}.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/build_info.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "reward_service/compiler/cuda_compiler.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/compiler/extension_compiler.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

struct Flags {
  std::string programs;
  std::string architecture = "sm_90a";
  int num_at_once = 1;
};

struct Compilers {
  CudaCompiler native;
  ExtensionCompiler inlined;
};

std::filesystem::path Share() { return ExecutableDirectory().parent_path() / "share/warpsmith"; }

HalvesPlaces Halves() {
  return {.program = Share().parent_path().parent_path() / "bin/warpsmith-nvrtc",
          .header_directory = Share() / "compiler/halves"};
}

std::string PythonInclude() {
  return *OutputOf(
      {GetBuildInfo().python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'], end='')"});
}

ExtensionCompilerOptions InlineOptions(const CudaToolchain& cuda, const std::string& architecture,
                                       const std::filesystem::path& work_directory) {
  return {.places = {.torch_dir = GetBuildInfo().torch_dir,
                     .python_include = PythonInclude(),
                     .facade_directory = Share() / "facade"},
          .work_directory = work_directory / "headers",
          .cuda = CudaTarget{cuda, {architecture}}};
}

std::vector<nlohmann::json> ReadPrograms(const std::string& path) {
  std::vector<nlohmann::json> programs;
  std::ifstream file(path);
  WS_CHECK(file.good()) << path;
  for (std::string line; std::getline(file, line);) programs.push_back(nlohmann::json::parse(line));
  return programs;
}

absl::StatusOr<CompiledProgram> Compile(Compilers* compilers, const nlohmann::json& program,
                                        const std::string& architecture) {
  const std::atomic<bool> cancelled{false};
  if (program.contains("source"))
    return compilers->native.Compile(program["source"].get<std::string>(), {architecture}, cancelled);
  return compilers->inlined.Compile({.name = "inline_extension",
                                     .cpp_sources = program["cpp_sources"],
                                     .cuda_sources = program["cuda_sources"],
                                     .functions = program["functions"],
                                     .extra_cuda_cflags = program["extra_cuda_cflags"]},
                                    cancelled);
}

void CompileOne(Compilers* compilers, const nlohmann::json& program, const std::string& architecture) {
  const absl::Time begin = absl::Now();
  const absl::StatusOr<CompiledProgram> compiled = Compile(compilers, program, architecture);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  WS_CHECK(compiled.ok()) << compiled.status().ToString();
  const nlohmann::json line = {{"name", program["name"]},
                               {"seconds", seconds},
                               {"succeeded", compiled->succeeded()},
                               {"headers", compiled->headers},
                               {"compiler", compiled->compiler},
                               {"error", FirstError(compiled->diagnostics)}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

int Main(const Flags& flags) {
  const absl::StatusOr<Toolchain> host = ProbeToolchain();
  WS_CHECK(host.ok()) << host.status().ToString();
  const absl::StatusOr<CudaToolchain> cuda = ProbeCudaToolchain(*host, GetBuildInfo().torch_dir);
  WS_CHECK(cuda.ok()) << cuda.status().ToString();
  const TemporaryDirectory work;
  Compilers compilers{CudaCompiler(*cuda, {.stub_directory = Share() / "facade/stubs",
                                           .withheld_directory = Share() / "facade/withheld",
                                           .halves = Halves()}),
                      ExtensionCompiler(*host, InlineOptions(*cuda, flags.architecture, work.path()))};
  const std::vector<nlohmann::json> programs = ReadPrograms(flags.programs);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.num_at_once; ++i) {
    threads.emplace_back([&] {
      for (size_t k = next++; k < programs.size(); k = next++)
        CompileOne(&compilers, programs[k], flags.architecture);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  warpsmith::Flags flags;
  CLI::App app("Seconds that the service's compilers take for CUDA programs");
  app.add_option("--programs", flags.programs)->required();
  app.add_option("--architecture", flags.architecture);
  app.add_option("--at-once", flags.num_at_once)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return warpsmith::Main(flags);
}
