#include "reward_service/program/source_facts.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const std::string kHead = "extern \"C\" int run(const DLTensor* const* inputs, DLTensor* const* outputs) {\n";

TEST_CASE("passes are the nests that are as deep as the deepest") {
  const std::string deep = "for (int i = 0; i < n; ++i) { for (int j = 0; j < m; ++j) out[i] += x[j]; }\n";
  const std::string flat = "for (int i = 0; i < n; ++i) out[i] *= 2;\n";
  const SourceFacts facts =
      ReadSourceFacts(kHead + deep + flat + "while (more) step();\n" + deep + " return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 2);
  CHECK(facts.loop_depth_max == 2);
  CHECK(ReadSourceFacts(kHead + flat + flat + flat + "return 0; }").num_passes == 3);
  CHECK(ReadSourceFacts(kHead + "return 0; }").num_passes == 0);
}

TEST_CASE("loops of a function that a loop calls are deeper, and no pass of their own") {
  const SourceFacts facts = ReadSourceFacts(
      "static float add(const float* x) { float s = 0; for (;;) s += *x; return s; }\n"
      "static float row(const float* x) { return add(x) + row(x); }\n" +
      kHead + "for (long r = 0; r < rows; ++r) out[r] = row(x + r); return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 1);
  CHECK(facts.loop_depth_max == 2);
}

TEST_CASE("comments, strings, dead branches and disabled text do not count") {
  const SourceFacts facts = ReadSourceFacts(kHead +
                                            "// for (;;) {}\n/* for (;;) {} */ puts(\"for (;;) {}\");\n"
                                            "#if 0\nfor (;;) {}\nstd::vector<float> v;\n#endif\n"
                                            "if (false) { for (;;) {} malloc(4); }\nif (0) for (;;) {}\n"
                                            "for (int i = 0; i < n; ++i) out[i] = x[i];\n return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 1);
  CHECK(facts.num_allocations == 0);
}

TEST_CASE("functions count where run reaches them, and only there") {
  const SourceFacts facts = ReadSourceFacts(
      "static void used(float* x) { for (;;) { for (;;) {} } }\n"
      "static void never(float* x) { for (;;) {} for (;;) {} std::vector<float> v(3); }\n"
      "namespace deep { template <typename T> T middle(T a) { used(a); return a; } }\n" +
      kHead + "return deep::middle(0); }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 1);
  CHECK(facts.loop_depth_max == 2);
  CHECK(facts.num_allocations == 0);
}

TEST_CASE("allocations are counted") {
  const SourceFacts facts = ReadSourceFacts(
      kHead + "std::vector<float> a(n); float* b = (float*)malloc(n); auto c = new float[n]; return 0; }");
  CHECK(facts.num_allocations == 3);
}

TEST_CASE("an innermost loop that multiplies its variable into an index is strided") {
  const auto strided = [](const std::string& body) {
    return ReadSourceFacts(kHead + body + " return 0; }").strided;
  };
  CHECK(
      strided("for (long c = 0; c < cols; ++c) for (long r = 0; r < rows; ++r) out[r * cols + c] = x[r * "
              "cols + c];"));
  CHECK(
      strided("for (long c = 0; c < cols; ++c) { for (long r = 0; r < rows; ++r) {\n"
              "const long i = r * cols + c; float v = x[i]; out[i] = v; } }"));
  CHECK(
      strided("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) { float s = 0;\n"
              "for (int k = 0; k < n; ++k) s += a[i * n + k] * b[n * k + j]; }"));
}

TEST_CASE("rows, blocks, addresses and values that are multiplied are no strides") {
  const auto strided = [](const std::string& body) {
    return ReadSourceFacts("static float row(const float* x) { float s = 0; for (;;) s += 1; return s; }\n" +
                           kHead + body + " return 0; }")
        .strided;
  };
  CHECK_FALSE(
      strided("for (long r = 0; r < rows; ++r) { const float* p = x + r * cols; const long base = r * cols;\n"
              "for (long c = 0; c < cols; ++c) out[base + c] = p[c]; }"));
  CHECK_FALSE(
      strided("for (long b = 0; b < n; b += 1024) for (long i = 0; i < 1024; ++i) out[b + i] = x[b + i];"));
  CHECK_FALSE(strided("for (long r = 0; r < rows; ++r) out[r] = row(&x[r * cols]);"));
  CHECK_FALSE(strided("for (long r = 0; r < rows; ++r) { const long i = r * cols; out[r] = row(x + i); }"));
  CHECK_FALSE(
      strided("for (long i = 0; i < n; ++i) { float v = i * scale; out[i] = v * w[i]; out[i * 2] = v; }"));
  CHECK_FALSE(strided("for (long i = 0; i < n; ++i) out[i] = x[i]; const long m = i * n;"));
  CHECK_FALSE(strided("if (0) { for (long r = 0; r < n; ++r) out[r * n] = 0; }"));
}

TEST_CASE("functions of libm are seen where they are live") {
  const auto calls = [](const std::string& body) {
    return ReadSourceFacts(kHead + body + " return 0; }").calls_libm;
  };
  CHECK(calls("for (;;) out[i] = std::exp(x[i]);"));
  CHECK(calls("for (;;) out[i] = tanhf(x[i]);"));
  CHECK_FALSE(calls("memcpy(out, x, n); float f = sqrtf(x[0]) + fmaxf(a, b);"));
  CHECK_FALSE(calls("if (false) { out[0] = expf(1); }"));
}

TEST_CASE("lambdas, do loops, else branches and switches are read") {
  const SourceFacts facts = ReadSourceFacts(
      kHead +
      "auto f = [&](int a) { for (;;) {} };\n do { g(); } while (a < b);\n"
      "if (a) { for (;;) {} } else for (;;) {}\n switch (a) { case 1: while (b) {} break; default: ; }\n"
      "return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 5);
}

constexpr char kKernels[] = R"(
__global__ void __launch_bounds__(256) scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
__global__ void unused(float* y) { y[threadIdx.x * 3] = 0; }
static void twice(const float* x, float* y, cudaStream_t s) { scale<<<8, 256, 0, s>>>(x, y, 1); }
)";

SourceFacts CudaFacts(const std::string& body, const std::string& kernels = kKernels) {
  return ReadSourceFacts(kernels + kHead + body + " return 0; }");
}

TEST_CASE("launches that run reaches are counted, and those in loops apart") {
  const std::string launch = "scale<<<grid, 256, 0, stream>>>(x, y, n);";
  CHECK(CudaFacts(launch).num_launches == 1);
  CHECK(CudaFacts(launch).num_looped_launches == 0);
  CHECK(CudaFacts(launch + "twice(x, y, s);").num_launches == 2);
  CHECK(CudaFacts("for (int i = 0; i < n; ++i) " + launch).num_looped_launches == 1);
  CHECK(CudaFacts("while (more) { twice(x, y, s); } " + launch).num_launches == 2);
  CHECK(CudaFacts("while (more) { twice(x, y, s); } " + launch).num_looped_launches == 1);
  CHECK(CudaFacts("if (false) " + launch + " // " + launch).num_launches == 0);
  CHECK(CudaFacts("scale<<<1, 256>>>(x, y, n);" + launch).num_one_block_launches == 1);
  CHECK(CudaFacts("scale<<<n, 1>>>(x, y, n);" + launch).num_one_thread_launches == 1);
  CHECK(CudaFacts(launch).num_one_block_launches == 0);
  CHECK(CudaFacts(launch).num_one_thread_launches == 0);
}

TEST_CASE("waiting for the GPU and asking for its memory are counted where they are live") {
  CHECK(CudaFacts("cudaStreamSynchronize(stream); cudaDeviceSynchronize();").num_synchronisations == 2);
  CHECK(CudaFacts("if (0) cudaDeviceSynchronize();").num_synchronisations == 0);
  CHECK(CudaFacts("float* t; cudaMallocAsync(&t, n, stream);").num_gpu_allocations == 1);
  CHECK(CudaFacts("").num_gpu_allocations == 0);
}

TEST_CASE("a thread's index that is multiplied into a place of global memory is a stride") {
  const auto strided = [](const std::string& kernel_body) {
    return CudaFacts("k<<<g, b>>>(x, y, n);",
                     "__global__ void k(const float* x, float* y, int n) {\n"
                     "int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                         kernel_body + "}\n")
        .strided_threads;
  };
  CHECK(strided("float s = 0; for (int c = 0; c < n; ++c) s += x[i * n + c]; y[i] = s;"));
  CHECK(strided("const float* row = x + i * n; y[i] = row[0];"));
  CHECK(strided("long base = n * i; y[i] = x[base];"));
  CHECK(strided("y[threadIdx.x * n] = 0;"));
  CHECK_FALSE(strided("for (int c = 0; c < n; ++c) y[c * n + i] = x[c * n + i];"));
  CHECK_FALSE(strided("y[4 * i] = x[i * 4];"));
  CHECK_FALSE(strided("float v = i * scale; y[i] = v;"));
  CHECK_FALSE(strided("int a = 1; if (i * n < 5) y[i] = a;"));
  CHECK_FALSE(strided("__shared__ float tile[1024]; tile[i * n] = x[i]; y[i] = tile[i * n];"));
}

TEST_CASE("a kernel that nobody launches shows nothing") {
  CHECK_FALSE(
      CudaFacts("scale<<<g, b>>>(x, y, n);",
                std::string(kKernels) + "__global__ void k(float* y, int n) { y[threadIdx.x * n] = 0; }")
          .strided_threads);
}

TEST_CASE("text without run, or nested beyond reason, has no facts") {
  CHECK_FALSE(ReadSourceFacts("int main() { for (;;) {} }").valid);
  CHECK_FALSE(ReadSourceFacts("").valid);
  CHECK_FALSE(ReadSourceFacts(kHead + std::string(100000, '{')).valid);
  CHECK_FALSE(ReadSourceFacts(kHead + std::string(1000, '{') + std::string(1000, '}')).valid);
  CHECK_FALSE(ReadSourceFacts("\"open R\"(").valid);
  ReadSourceFacts(kHead + "for (((((");
  ReadSourceFacts(kHead + "if (");
}

}  // namespace
}  // namespace warpsmith
