#include "reward_service/compiler/halves/halves_command.h"

#include <atomic>
#include <string>
#include <utility>

#include "reward_service/compiler/diagnostics.h"
#include "tests/support/catch.h"
#include "tests/support/native_cuda.h"

namespace warpsmith {
namespace {

TEST_CASE("where there is no NVRTC of nvcc's version, or it refuses a program, nvcc compiles it") {
  const CudaCompiler both = MakeCompiler();
  CudaToolchain toolchain = both.toolchain();
  toolchain.nvrtc = std::nullopt;
  const CudaCompiler nvcc(toolchain, {.stub_directory = Share() / "facade/stubs",
                                      .withheld_directory = Share() / "facade/withheld",
                                      .halves = Halves(),
                                      .limits = {.wall_seconds_max = 60}});
  CHECK(CompileOrFail(nvcc, kRelu).compiler == toolchain.version);
  const std::string deduced = "template <class T> __global__ void Copy(T* y) { y[0] = 1; }\n";
  const CompiledProgram program =
      CompileOrFail(both, deduced + "extern \"C\" int run(float* y) { Copy<<<1, 1>>>(y); return 0; }\n");
  INFO(program.diagnostics);
  CHECK(program.succeeded());
  CHECK(program.compiler == toolchain.version);
}

TEST_CASE("the verdict is nvcc's, whichever way a program is compiled") {
  const CudaCompiler compiler = MakeCompiler();
  const std::string run =
      "extern \"C\" int run(float* y, cudaStream_t s) { k<<<1, 2, 0, s>>>(y); return 0; }\n";
  const auto kernel = [](const std::string& body) {
    return "__global__ void k(float* y) { " + body + " }\n";
  };
  const std::pair<bool, std::string> kPrograms[] = {
      {true, kernel("y[0] = min(1, 2) + max(2.f, y[1]) + INFINITY + M_PI;") + run},
      {true, "#include <float.h>\n" + kernel("y[0] = FLT_MAX;") + run},
      {false, kernel("y[0] = FLT_MAX;") + run},
      {false, kernel("uint8_t a = 1; y[0] = a;") + run},
      {true, "#include <cstdint>\n" + kernel("uint8_t a = 1; y[0] = a;") + run},
      {true,
       "#include <mma.h>\nusing namespace nvcuda;\n" +
           kernel("wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::fill_fragment(c, 0.f); "
                  "wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);") +
           run},
      {true, "constexpr float square(float v) { return v * v; }\n" + kernel("y[0] = square(y[1]);") + run},
      {false, "float square(float v) { return v * v; }\n" + kernel("y[0] = square(y[1]);") + run},
      {true, "__constant__ float c[2];\n" + kernel("y[0] = c[1];") + run},
      {false, "static const float table[2] = {1, 2};\n" + kernel("y[0] = table[int(y[1])];") + run},
      {false,
       kernel("y[0] = 1;") + "template <class T> __global__ void other(T* y) { nonsense(3); }\n" + run},
      {false, kernel("y[0] = 1;") + "extern \"C\" int run(float* y) { k(y); return 0; }\n"},
      {false, kernel("y[0] = 1;") + "extern \"C\" int run(float* y) { k<<<1, 2, 0, y>>>(y); return 0; }\n"},
      {false, "__device__ float f(float v) { return v; }\n" + kernel("") +
                  "extern \"C\" int run(float* y) { return f(1) > 0; }\n"},
  };
  for (const auto& [compiles, source] : kPrograms) {
    const CompiledProgram program = CompileOrFail(compiler, source);
    INFO(source << program.compiler << "\n" << program.diagnostics);
    CHECK(program.succeeded() == compiles);
  }
}

TEST_CASE("a program that explodes in NVRTC is given up there, and refused by nvcc within what is left") {
  const CudaCompiler compiler = MakeCompiler({.cpu_seconds_max = 2, .memory_bytes_max = int64_t{1} << 30});
  const std::string launch = "extern \"C\" int run(long* y) { k<<<1, 1>>>(y); return 0; }\n";
  for (const std::string& bomb :
       {std::string(
            "template <int N, int M> struct F { static constexpr long v = F<N - 1, 2 * M>::v + "
            "F<N - 1, 2 * M + 1>::v; };\ntemplate <int M> struct F<0, M> { static constexpr long v = M; };\n"
            "__global__ void k(long* y) { *y = F<40, 1>::v; }\n"),
        std::string("template <int N> struct A { typedef A<N + 1> T; static const int v = T::v; };\n"
                    "__global__ void k(long* y) { *y = A<0>::v; }\n")}) {
    const CompiledProgram program = CompileOrFail(compiler, bomb + launch);
    INFO(bomb << program.diagnostics);
    CHECK_FALSE(program.succeeded());
    CHECK(program.compiler == compiler.toolchain().version);
    CHECK(FirstError(program.diagnostics) != "");
  }
}

}  // namespace
}  // namespace warpsmith
