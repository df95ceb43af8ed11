#include "reward_service/compiler/cuda_compiler.h"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/base/build_info.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/compiler/nvcc_steps.h"
#include "reward_service/sandbox/confinement.h"
#include "tests/support/catch.h"
#include "tests/support/native_cuda.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kEndless[] =
    "template <int N, int M> struct F { static constexpr long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + "
    "1>::v; };"
    "template <int M> struct F<0, M> { static constexpr long v = M; };"
    "__global__ void k(long* x) { *x = F<40, 1>::v; }";

// The runtime that the jail would have; its registration of kernels needs no GPU.
void LoadRuntime() {
  const std::filesystem::path packages = std::filesystem::path(GetBuildInfo().torch_dir).parent_path();
  for (const std::filesystem::path& path :
       {packages / "nvidia/cu13/lib/libcudart.so.13", std::filesystem::path("libcudart.so.13")}) {
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  }
  FAIL("no libcudart.so.13 beside torch: " << dlerror());
}

TEST_CASE("a CUDA candidate becomes a library with its entry point, and its machine code comes beside it") {
  const CudaCompiler compiler = MakeCompiler();
  const CompiledProgram program = CompileOrFail(compiler, kRelu);
  INFO(program.diagnostics);
  REQUIRE(program.succeeded());
  const std::string version = compiler.toolchain().version;
  CHECK(program.compiler == (compiler.toolchain().nvrtc ? "NVRTC of " + version : version));
  REQUIRE(program.cubins.size() == 1);
  CHECK(program.cubins[0].architecture == "sm_90a");
  CHECK(program.cubins[0].bytes.substr(0, 4) == "\177ELF");
  CHECK(program.cubins[0].bytes.find("Relu") != std::string::npos);
  LoadRuntime();
  void* library = dlopen(("/proc/self/fd/" + std::to_string(program.library->get())).c_str(), RTLD_NOW);
  INFO((library == nullptr ? dlerror() : "loaded"));
  REQUIRE(library != nullptr);
  CHECK(dlsym(library, "run") != nullptr);
}

TEST_CASE("a program is known by what its halves are compiled with, one that is nvcc's is not") {
  const TemporaryDirectory folder;
  const CudaToolchain toolchain = MakeCompiler().toolchain();
  if (!toolchain.nvrtc) {
    WARN("skipped: no NVRTC beside nvcc");
    return;
  }
  const auto key = [&](const std::string& header, const std::string& source) {
    std::ofstream(folder.path() / "native_host.h") << header;
    const CudaCompiler compiler(toolchain, {.stub_directory = Share() / "facade/stubs",
                                            .withheld_directory = Share() / "facade/withheld",
                                            .halves = HalvesPlaces{Halves().program, folder.path()}});
    return compiler.Key(source, {"sm_90a"});
  };
  CHECK(key("// one", kRelu) == key("// one", kRelu));
  CHECK(key("// one", kRelu) != key("// two", kRelu));
  const std::string of_nvcc = std::string(kRelu) + "\n#if 1\n#endif\n";
  CHECK(key("// one", of_nvcc) == key("// two", of_nvcc));
}

TEST_CASE("where halves cannot be compiled nvcc compiles the program") {
  CudaToolchain toolchain = MakeCompiler().toolchain();
  if (toolchain.nvrtc) toolchain.nvrtc->files.emplace_back("/nonexistent/libnvrtc-builtins.so");
  const CudaCompiler compiler(
      toolchain,
      {.stub_directory = Share() / "facade/stubs",
       .withheld_directory = Share() / "facade/withheld",
       .halves = Halves(),
       .limits = {.cpu_seconds_max = 20, .wall_seconds_max = 60, .memory_bytes_max = int64_t{4} << 30}});
  const CompiledProgram program = CompileOrFail(compiler, kRelu);
  CHECK(program.succeeded());
  CHECK(program.compiler == toolchain.version);
}

TEST_CASE("the steps of this machine's nvcc are those that run in two chains") {
  const std::string nvcc = MakeCompiler().toolchain().compiler;
  const std::vector<std::string> command = {nvcc,          "-gencode",   "arch=compute_90a,code=sm_90a",
                                            "--keep",      "--keep-dir", "/tmp",
                                            "-c",          "-o",         "/tmp/candidate.o",
                                            "candidate.cu"};
  CHECK(InTwoChains(command, std::atomic<bool>(false))[0] == "/bin/sh");
}

TEST_CASE("each architecture has machine code of its own, in the order asked for") {
  const CompiledProgram program = CompileOrFail(MakeCompiler(), kRelu, {"sm_90a", "sm_80"});
  INFO(program.diagnostics);
  REQUIRE(program.succeeded());
  REQUIRE(program.cubins.size() == 2);
  CHECK(program.cubins[0].architecture == "sm_90a");
  CHECK(program.cubins[1].architecture == "sm_80");
  CHECK(program.cubins[0].bytes != program.cubins[1].bytes);
}

TEST_CASE("a program without a kernel compiles as well") {
  CHECK(CompileOrFail(MakeCompiler(), "extern \"C\" int run() { return 0; }\n").succeeded());
}

TEST_CASE("a program may have lambdas for the device, however they are written") {
  const CudaCompiler compiler = MakeCompiler();
  const std::string kernel =
      "template <class F> __global__ void Each(float* x, F f) { x[threadIdx.x] = f(x[threadIdx.x]); }\n";
  for (const char* lambda : {"[a]/* on the */__device__ (float v) { return v * a; }",
                             "[=]\n__host__ __device__(float v) { return v * a; }",
                             "CAPTURE __device__ (float v) "
                             "{ return v * a; }"}) {
    INFO(lambda);
    const CompiledProgram program =
        CompileOrFail(compiler, (lambda[0] == 'C' ? "#define CAPTURE [=]\n" : "") + kernel +
                                    "extern \"C\" int run(float* x, float a) {\n  Each<<<1, 32>>>(x, " +
                                    lambda + ");\n  return 0;\n}\n");
    INFO(program.diagnostics);
    CHECK(program.succeeded());
  }
}

TEST_CASE("what a program uses of the standard library is there whether it has lambdas or not") {
  const CudaCompiler compiler = MakeCompiler();
  for (const char* source :
       {"extern \"C\" int run() { std::vector<int> v = {2, 1}; std::sort(v.begin(), v.end()); "
        "return v[0] + (std::riemann_zeta(2.0) > std::numeric_limits<double>::min()); }\n",
        "#define OF(name) st##d::name\nextern \"C\" int run() { return OF(min)(1, 2); }\n"}) {
    INFO(source);
    const CompiledProgram program = CompileOrFail(compiler, source);
    INFO(program.diagnostics);
    CHECK(program.succeeded());
  }
}

TEST_CASE("headers of CUDA and C compile for a program that names nothing of the standard library") {
  const CompiledProgram program = CompileOrFail(MakeCompiler(), R"(
#include <assert.h>
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <dlpack/dlpack.h>
#include <math.h>
#include <math_constants.h>
#include <mma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector_types.h>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
__global__ void k(const __half2* x, float* y) {
  auto block = cooperative_groups::this_thread_block();
  block.sync();
  y[threadIdx.x] = max(abs(__low2float(x[threadIdx.x])), CUDART_INF_F) + erff(y[0]) + min(1, 2);
}
extern "C" int run(const DLTensor* const* inputs) {
  k<<<1, 32>>>((const __half2*)inputs[0]->data, nullptr);
  return isnan(sqrt(2.0)) || abs(-1.5f) < 1;
}
)");
  INFO(program.diagnostics);
  CHECK(program.succeeded());
}

TEST_CASE("a program may reduce with CUB") {
  const CudaCompiler compiler = MakeCompiler();
  const CompiledProgram program = CompileOrFail(compiler, R"(#include <cub/block/block_reduce.cuh>
#include <dlpack/dlpack.h>
__global__ void Sum(const float* x, float* y, long n) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = 0;
  for (long i = threadIdx.x; i < n; i += 256) sum += x[i];
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) *y = sum;
}
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs,
                   cudaStream_t stream) {
  Sum<<<1, 256, 0, stream>>>((const float*)inputs[0]->data, (float*)outputs[0]->data, inputs[0]->shape[0]);
  return cudaGetLastError();
}
)");
  INFO(program.diagnostics);
  CHECK(program.succeeded());
}

TEST_CASE("a program may use CUTLASS where its headers are") {
  const CudaCompiler compiler = MakeCompiler();
  if (compiler.toolchain().include_flags.empty()) {
    WARN("skipped: neither nvidia-cutlass nor flashinfer-python is beside torch");
    return;
  }
  // One instruction of the tensor cores: a whole product of CUTLASS takes nvcc a minute.
  const CompiledProgram program = CompileOrFail(compiler, R"(#include <cutlass/arch/mma.h>
#include <cutlass/numeric_types.h>
#include <dlpack/dlpack.h>
using Row = cutlass::layout::RowMajor;
using Mma = cutlass::arch::Mma<cutlass::gemm::GemmShape<16, 8, 16>, 32, cutlass::half_t, Row, cutlass::half_t,
                               cutlass::layout::ColumnMajor, float, Row, cutlass::arch::OpMultiplyAdd>;
__global__ void Multiply(const Mma::FragmentA* a, const Mma::FragmentB* b, Mma::FragmentC* c) {
  Mma()(c[threadIdx.x], a[threadIdx.x], b[threadIdx.x], c[threadIdx.x]);
}
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs,
                   cudaStream_t stream) {
  Multiply<<<1, 32, 0, stream>>>((const Mma::FragmentA*)inputs[0]->data, (const Mma::FragmentB*)inputs[1]->data,
                                 (Mma::FragmentC*)outputs[0]->data);
  return cudaGetLastError();
}
)");
  INFO(program.diagnostics);
  CHECK(program.succeeded());
}

TEST_CASE("architectures are one to six plain names") {
  const CudaCompiler compiler = MakeCompiler();
  const std::atomic<bool> cancelled{false};
  const Architectures wrong[] = {{},
                                 {"90"},
                                 {"sm_"},
                                 {"sm_9"},
                                 {"compute_90"},
                                 {"sm_90b"},
                                 {"sm_90,code=x"},
                                 {"sm_80", "sm_90;"},
                                 Architectures(7, "sm_90")};
  for (const Architectures& names : wrong) {
    INFO((names.empty() ? "none" : names.back()));
    CHECK(absl::IsInvalidArgument(compiler.Compile(kRelu, names, cancelled).status()));
  }
  for (const char* name : {"sm_75", "sm_90a", "sm_100f"}) CHECK(CheckArchitectures({name}).ok());
}

TEST_CASE("a key tells sources, architectures and compilers apart") {
  const CudaCompiler compiler = MakeCompiler();
  const std::string key = compiler.Key(kRelu, {"sm_90"});
  CHECK(compiler.Key(kRelu, {"sm_90"}) == key);
  CHECK(compiler.Key(kRelu, {"sm_90a"}) != key);
  CHECK(compiler.Key(kRelu, {"sm_90", "sm_80"}) != key);
  CHECK(compiler.Key("", {"sm_90"}) != key);
  CHECK(CudaCompiler({.compiler = compiler.toolchain().compiler, .fingerprint = "other"}, {})
            .Key(kRelu, {"sm_90"}) != key);
}

TEST_CASE("files of the machine cannot be included, and a program takes in no library of CUDA") {
  if (LandlockVersion() == 0) return;
  const CudaCompiler compiler = MakeCompiler();
  const auto takes = [&](const std::filesystem::path& path) {
    return CompileOrFail(compiler, "asm(\".incbin \\\"" + path.string() +
                                       "\\\"\");\nextern \"C\" int run() { return 0; }\n")
        .succeeded();
  };
  CHECK_FALSE(CompileOrFail(compiler, "#include \"/etc/passwd\"\n").succeeded());
  CHECK(takes("/usr/include/stdio.h"));
  // Small enough to be taken, if they could be read.
  const std::filesystem::path torch = GetBuildInfo().torch_dir;
  const std::filesystem::path libraries[] = {
      torch.parent_path() / "nvidia/cu13/lib/libcudart.so.13",
      torch.parent_path() / "nvidia/cu13/lib/libnvblas.so.13", "/usr/local/cuda/lib64/libcudadevrt.a",
      "/usr/local/cuda/lib64/libcudart.so.13", "/usr/local/cuda/lib64/libnvblas.so.13"};
  for (const std::filesystem::path& path : libraries) {
    INFO(path.string());
    std::error_code error;
    if (std::filesystem::exists(path, error)) CHECK_FALSE(takes(std::filesystem::canonical(path)));
  }
}

// What compilers say first of programs that they refuse.
TEST_CASE("a CUDA program that is refused is told by its own lines") {
  const CudaCompiler compiler = MakeCompiler();
  const auto diagnostics = [&](const std::string& source) {
    const CompiledProgram program = CompileOrFail(compiler, source);
    CHECK_FALSE(program.succeeded());
    CHECK(program.cubins.empty());
    return program.diagnostics;
  };
  CHECK(diagnostics("__global__ void k(float* x) {\n  float a = 1\n  x[0] = a;\n}\n") ==
        "3: error: expected a \";\"\n");
  CHECK(FirstError(diagnostics("#include <cublas_v2.hpp>\n")) ==
        "error: cublas_v2.hpp: No such file or directory");
  CHECK(FirstError(diagnostics("__global__ void k(float* x) { asm volatile(\"nonsense;\"); }\n"
                               "extern \"C\" int run() { k<<<1, 1>>>(nullptr); return 0; }\n")) ==
        "error: Not a name of any known instruction: 'nonsense'");
  CHECK(FirstError(diagnostics("extern \"C\" int run() { asm(\"nonsense\"); return 0; }\n")) ==
        "error: no such instruction: `nonsense'");
  CHECK_THAT(diagnostics("__global__ void k(int* x) { asm(\"mov.u32 %0, 1;\" : \"=z\"(x[0])); }\n"),
             Catch::Contains("1: error: unknown asm constraint letter 'z'"));
  CHECK_THAT(diagnostics("__global__ void k(int* x) {\n  asm(\"mov.u32 %q0, 1;\" : \"=r\"(x[0]));\n}\n"),
             Catch::Contains("2: error: Asm operand modifier not supported"));
}

TEST_CASE("a CUDA compilation that explodes is a refused program within its limits") {
  const CudaCompiler compiler = MakeCompiler(
      {.cpu_seconds_max = 2, .memory_bytes_max = int64_t{1} << 30, .library_bytes_max = int64_t{4} << 20});
  const char* const kBombs[] = {
      "template <int N> struct A { typedef A<N + 1> T; static const int v = T::v; }; int x = A<0>::v;",
      kEndless, "__device__ char huge[1L << 30] = {1};", "#include \"/dev/zero\"\n"};
  for (const char* bomb : kBombs) {
    const CompiledProgram program = CompileOrFail(compiler, bomb);
    INFO(bomb << "\n" << program.diagnostics);
    CHECK_FALSE(program.succeeded());
    CHECK(FirstError(program.diagnostics) != "");
    CHECK(program.diagnostics.size() <= kDiagnosticsBytesMax + 200);
  }
}

TEST_CASE("a cancelled CUDA compilation ends without waiting for the compiler") {
  const CudaCompiler compiler = MakeCompiler({.cpu_seconds_max = 60, .memory_bytes_max = int64_t{4} << 30});
  std::atomic<bool> cancelled{false};
  absl::StatusOr<CompiledProgram> program = absl::UnknownError("not run");
  std::thread compilation([&] { program = compiler.Compile(kEndless, {"sm_90a"}, cancelled); });
  cancelled = true;
  compilation.join();
  CHECK(absl::IsCancelled(program.status()));
}

}  // namespace
}  // namespace warpsmith
