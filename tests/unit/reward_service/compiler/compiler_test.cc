#include "reward_service/compiler/compiler.h"

#include <dlfcn.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "core/base/memory_file.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/sandbox/confinement.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kHonest[] = R"(#include <dlpack/dlpack.h>
#include <cmath>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs) {
  const float* x = (const float*)inputs[0]->data;
  float* out = (float*)outputs[0]->data;
  for (long i = 0; i < inputs[0]->shape[0]; ++i) out[i] = std::fabs(x[i]);
  return 7;
}
)";

// Precompiling headers takes seconds on a busy machine, so the tests share them.
const std::filesystem::path& Preludes() {
  static const TemporaryDirectory folder;
  return folder.path();
}

std::unique_ptr<Compiler> MakeCompiler(CompileLimits limits = {}) {
  absl::StatusOr<std::unique_ptr<Compiler>> compiler = Compiler::Create(Preludes(), limits);
  INFO(compiler.status().ToString());
  REQUIRE(compiler.ok());
  return *std::move(compiler);
}

CompiledProgram CompileOrFail(const Compiler& compiler, const std::string& source) {
  const std::atomic<bool> cancelled{false};
  absl::StatusOr<CompiledProgram> program = compiler.Compile(source, cancelled);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return *std::move(program);
}

TEST_CASE("a candidate becomes a shared library with its entry point") {
  const auto compiler = MakeCompiler();
  const CompiledProgram program = CompileOrFail(*compiler, kHonest);
  INFO(program.diagnostics);
  REQUIRE(program.succeeded());
  void* library = dlopen(("/proc/self/fd/" + std::to_string(program.library->get())).c_str(), RTLD_NOW);
  REQUIRE(library != nullptr);
  CHECK(dlsym(library, "run") != nullptr);
  dlclose(library);
}

TEST_CASE("a prelude changes no byte of the library") {
  const auto compiler = MakeCompiler();
  const std::string first = kHonest;
  const std::string plain = "struct BeforeTheHeaders;\n" + first;
  REQUIRE(LeadingHeaders(first).size() == 2);
  REQUIRE(LeadingHeaders(plain).empty());
  const CompiledProgram without = CompileOrFail(*compiler, plain);
  const CompiledProgram with = CompileOrFail(*compiler, first);
  REQUIRE(without.succeeded());
  REQUIRE(with.succeeded());
  CHECK(*ReadMemoryFile(without.library->get(), 1 << 24) == *ReadMemoryFile(with.library->get(), 1 << 24));
}

TEST_CASE("a folder that takes no preludes costs time, not programs") {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "file") << "in the way";
  absl::StatusOr<std::unique_ptr<Compiler>> compiler =
      Compiler::Create(folder.path() / "file" / "preludes", {});
  INFO(compiler.status().ToString());
  REQUIRE(compiler.ok());
  const CompiledProgram program = CompileOrFail(**compiler, kHonest);
  INFO(program.diagnostics);
  CHECK(program.succeeded());
}

TEST_CASE("a program may use the special functions, which preludes lack") {
  const auto compiler = MakeCompiler();
  std::string source = kHonest;
  source.replace(source.find("std::fabs(x[i])"), 15, "std::riemann_zeta(x[i])");
  const CompiledProgram program = CompileOrFail(*compiler, source);
  INFO(program.diagnostics);
  CHECK(program.succeeded());
}

TEST_CASE("a syntax error comes back with line and message of the candidate") {
  const auto compiler = MakeCompiler();
  const CompiledProgram program = CompileOrFail(*compiler, "int a = 1\nfloat b;\n");
  CHECK_FALSE(program.succeeded());
  CHECK(program.diagnostics.substr(0, 2) == "2:");
  CHECK(FirstError(program.diagnostics) == "error: expected ',' or ';' before 'float'");
}

TEST_CASE("files of the machine cannot be included") {
  const auto compiler = MakeCompiler();
  for (const char* path : {"/etc/passwd", "/proc/1/environ", "/root/.bashrc"}) {
    const CompiledProgram program = CompileOrFail(*compiler, "#include \"" + std::string(path) + "\"\n");
    INFO(path << ": " << program.diagnostics);
    CHECK_FALSE(program.succeeded());
    CHECK(program.diagnostics.find("root:") == std::string::npos);
  }
  const CompiledProgram by_assembler = CompileOrFail(*compiler, "asm(\".incbin \\\"/etc/passwd\\\"\");\n");
  CHECK_FALSE(by_assembler.succeeded());
}

TEST_CASE("a program takes in nothing of the system but what it is compiled and linked with") {
  if (LandlockVersion() == 0) return;
  const auto compiler = MakeCompiler();
  const auto takes = [&](const std::string& path) {
    return CompileOrFail(*compiler,
                         "asm(\".incbin \\\"" + path + "\\\"\");\nextern \"C\" int run() { return 0; }\n")
        .succeeded();
  };
  CHECK(takes("/usr/include/stdio.h"));
  CHECK_FALSE(takes("/usr/bin/bash"));
  CHECK_FALSE(takes("/etc/alternatives/README"));
  CHECK_FALSE(takes("/usr/lib/os-release"));
}

TEST_CASE("a compilation that explodes is a refused program within its limits") {
  CompileLimits limits;
  limits.cpu_seconds_max = 1;
  limits.wall_seconds_max = 2;
  limits.memory_bytes_max = int64_t{512} << 20;
  const auto compiler = MakeCompiler(limits);
  const char* const kBombs[] = {
      "template <int N> struct A { typedef A<N + 1> T; static const int v = T::v; }; int x = A<0>::v;",
      "template <int N, int M> struct F { static constexpr long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + "
      "1>::v; };"
      "template <int M> struct F<0, M> { static constexpr long v = M; }; long x = F<40, 1>::v;",
      "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i; return s; }"
      "static_assert(f(1L << 40) > 0);",
      "char huge[1L << 33] = {1}; int main() {}",
      "#include \"/dev/zero\"\n",
      "#define A B B B B B B B B\n#define B C C C C C C C C\n#define C D D D D D D D D\n#define D E E E E E "
      "E E E\n"
      "#define E F F F F F F F F\n#define F G G G G G G G G\n#define G H H H H H H H H\n#define H "
      "1+1+1+1+1+1+1+1+\nlong x = A 0;"};
  for (const char* bomb : kBombs) {
    const absl::Time begin = absl::Now();
    const CompiledProgram program = CompileOrFail(*compiler, bomb);
    INFO(bomb << "\n" << program.diagnostics);
    CHECK_FALSE(program.succeeded());
    CHECK(FirstError(program.diagnostics) != "");
    CHECK(program.diagnostics.size() <= kDiagnosticsBytesMax + 200);
    CHECK(absl::Now() - begin < absl::Seconds(30));  // bounded, not fast
  }
}

TEST_CASE("a cancelled compilation ends without waiting for the compiler") {
  CompileLimits limits;
  limits.wall_seconds_max = 60;
  limits.cpu_seconds_max = 60;
  const auto compiler = MakeCompiler(limits);
  std::atomic<bool> cancelled{false};
  absl::StatusOr<CompiledProgram> program = absl::UnknownError("not run");
  std::thread compilation([&] {
    program = compiler->Compile(
        "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) for (long j = 0; j < 200000; "
        "++j) s += i;"
        " return s; } static_assert(f(1L << 40) > 0);",
        cancelled);
  });
  cancelled = true;
  compilation.join();
  CHECK(absl::IsCancelled(program.status()));
}

}  // namespace
}  // namespace warpsmith
