#include "reward_service/compiler/halves/cuda_halves.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr char kRun[] =
    "extern \"C\" int run(float* y, cudaStream_t s) {\n  k<<<(y + 1 > y) ? 4 : 8, 32, 0, s>>>(y);\n  return "
    "0;\n}\n";

CudaHalves Split(const std::string& source) {
  const auto halves = SplitCuda(source);
  REQUIRE(halves.has_value());
  return *halves;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("kernels go to the device's half, launches to the host's as calls of a stub") {
  const CudaHalves halves = Split(
      "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#define N 4\nstruct P { int n; };\n"
      "static __device__ float twice(float v) { return 2 * v; }\n"
      "__global__ void __launch_bounds__(256, 2) k(float* y) {\n#pragma unroll\n  y[0] = twice(N);\n}\n" +
      std::string(kRun));
  CHECK(halves.kernels == std::vector<std::string>{"k"});
  for (const char* both : {"#define N 4", "struct P { int n; };", "#include <cuda_fp16.h>"}) {
    INFO(both);
    CHECK(Contains(halves.device, both));
    CHECK(Contains(halves.host, both));
  }
  CHECK(Contains(halves.device, "#pragma unroll\n  y[0] = twice(N);"));
  CHECK_FALSE(Contains(halves.device, "run"));
  CHECK_FALSE(Contains(halves.device, "cuda_runtime.h"));
  CHECK_FALSE(Contains(halves.host, "twice"));
  CHECK(Contains(halves.host, "void k ( float * y ) { WARPSMITH_STUB }"));
  CHECK(Contains(halves.host, "::warpsmith::Launch(k, (y + 1 > y) ? 4 : 8, 32, 0, s) (y);"));
}

TEST_CASE("each instance of a kernel's template that the host names is a kernel") {
  const CudaHalves halves = Split(
      "template <int n, typename T> __global__ void k(T* y) { y[0] = n; }\n"
      "int run(float* y) {\n  cudaFuncSetAttribute(k<4, float>, cudaFuncAttributeMaxDynamicSharedMemorySize, "
      "1);\n"
      "  k<4, float><<<1, 2>>>(y);\n  k<(8 > 4), float><<<dim3(1, 2), 2>>>(y);\n  return 0;\n}\n");
  CHECK(halves.kernels == std::vector<std::string>{"k<4, float>", "k<(8 > 4), float>"});
  CHECK(Contains(halves.host, "::warpsmith::Launch(k<(8 > 4), float>, dim3(1, 2), 2) (y);"));
}

TEST_CASE("what both halves may need is in both, and what the host alone has in its own") {
  const CudaHalves halves = Split(
      "#include <cstdint>\n#include <vector>\nnamespace {\nconstexpr int kRows = 4;\nint g_calls = 0;\n"
      "__host__ __device__ inline float half(float v) { return v / 2; }\n"
      "__global__ void k(float* y) { y[0] = half(kRows); }\n}\nint blocks(int n) { return n + kRows; }\n" +
      std::string(kRun));
  for (const char* both : {"constexpr int kRows = 4;", "inline float half", "namespace {"}) {
    INFO(both);
    CHECK(Contains(halves.device, both));
    CHECK(Contains(halves.host, both));
  }
  for (const char* host : {"int g_calls = 0;", "int blocks(int n)", "#include <vector>"}) {
    INFO(host);
    CHECK_FALSE(Contains(halves.device, host));
    CHECK(Contains(halves.host, host));
  }
  CHECK(Contains(halves.device, "#include \"native_stdint.h\""));
}

TEST_CASE("a program that might mean something else in halves is left to nvcc") {
  const std::string kernel = "__global__ void k(float* y) { y[0] = 1; }\n";
  const std::string run = kRun;
  REQUIRE(SplitCuda(kernel + run));
  for (const std::string& source : {
           std::string("extern \"C\" int run() { return 0; }\n"),
           "#ifdef X\n#endif\n" + kernel + run,
           "#include <cub/cub.cuh>\n" + kernel + run,
           "#include <cublasLt.h>\n" + kernel + run,
           "#define KERNEL __global__ void\n" + kernel + run,
           "#define GO(y) k<<<1, 2>>>(y)\n" + kernel + run,
           "__constant__ float c[4];\n" + kernel + run,
           "__device__ int counter;\n" + kernel + run,
           "constexpr float table[2] = {1, 2};\n" + kernel + run,
           "__global__ void k(float* y);\n" + kernel + run,
           "namespace a {\n__global__ void k(float* y) {}\n}\n" + run,
           kernel + "__global__ void k(float* y, int n) {}\n" + run,
           kernel + "template <class T> __global__ void unused(T* y) { nothing; }\n" + run,
           kernel + "template <class T> __device__ T unused(T* y) { return nothing; }\n" + run,
           "__device__ float f(float v) { return v; }\nfloat f(double v) { return v; }\n" + kernel + run,
           kernel + "int run(float* y) { auto* other = k; other<<<1, 2>>>(y); return 0; }\n",
           kernel + "int run(float* y) { k(y); return 0; }\n",
           kernel + "int run(float* y) { a::k<<<1, 2>>>(y); return 0; }\n",
           // Another instance than is launched would be known by the name at the end of the file.
           std::string("constexpr int n = 8;\ntemplate <int n> __global__ void k(float* y) {}\n") +
               "template <int n> void go(float* y) { k<n><<<1, n>>>(y); }\nint run(float* y) { go<4>(y); "
               "return "
               "0; }\n",
           "template <int n> __global__ void k(float* y) {}\nint run(float* y) { k<4 /*" +
               std::string(2000, '*') + "*/><<<1, 2>>>(y); return 0; }\n",
           kernel + "__global__ void outer(float* y) { k<<<1, 2>>>(y); }\n" + run,
           kernel + run + "// goes on \\\nint a;\n",
           kernel + run + "// goes on \\ \nint a;\n",
           kernel + run + "#pragma once \\\t\nint a;\n",
           "#define H <cublas_v2.h>\n#include H  // <math.h>\n" + kernel + run,
           "#include <math.h> nothing\n" + kernel + run,
           kernel + "const char* text = R\"(k<<<1, 2>>>)\";\n" + run,
           kernel + "const char* text = \"open;\n" + run,
           kernel + run + "int f() {\n#define LATE 1\n  return 0;\n}\n",
           kernel + run + "}\n",
           kernel + run + "int f() {\n",
           kernel + "int run(float* y) { k<<<1, 2; return 0; }\n",
           kernel + "int run(float* y) { k<<<1, 2>>>; return 0; }\n",
           kernel + "int run(float* y) { k<1; return 0; }\n",
           "template <class T\n" + kernel + run,
           [] {
             std::string nested;
             for (int i = 0; i < 9; ++i) nested += "namespace {\n";
             return nested;
           }() +
               kernel + run + std::string(9, '}'),
           std::string("__global__"),
           std::string("template"),
           std::string("#include"),
           std::string("__global__ void ("),
           std::string(100, '(') + kernel,
       }) {
    INFO(source);
    CHECK_FALSE(SplitCuda(source));
  }
}

TEST_CASE(
    "a program of as many templates as a request may have is split, in time that grows with its length "
    "alone") {
  std::string source;
  int number = 0;
  for (; source.size() < (250 << 10); ++number) {
    const std::string name = "f" + std::to_string(number);
    source += "template <typename T> __device__ T " + name + "(T x) { return x < T(1) ? x : T(2); }\n";
  }
  source += "__global__ void k(float* x) { *x = ";
  for (int i = 0; i < number; ++i) source += "f" + std::to_string(i) + "(";
  source += "1.0f" + std::string(static_cast<size_t>(number), ')') + "; }\n";
  source += "void launch(float* x) { k<<<1, 1>>>(x); }\n";
  CHECK(SplitCuda(source).has_value());
}

TEST_CASE("a program whose angles never end is nvcc's") {
  std::string source = "__global__ void k(float* x) { *x = 1; }\nvoid launch(float* x) { bool b = ";
  while (source.size() < (250 << 10)) source += "k<";
  CHECK_FALSE(SplitCuda(source + "1; }\n").has_value());
}

}  // namespace
}  // namespace warpsmith
