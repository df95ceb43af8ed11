#include "reward_service/program/cuda_tokens.h"

#include <string>

#include "reward_service/program/cpp_tokens.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

int NumLaunches(const std::string& text) {
  const std::vector<std::string_view> tokens = CppTokens(text);
  int num_launches = 0;
  for (size_t i = 0; i < tokens.size(); ++i) num_launches += LaunchAt(tokens, i).has_value();
  return num_launches;
}

// Of the one launch in `text`.
LaunchTokens Launch(const std::string& text) {
  const std::vector<std::string_view> tokens = CppTokens(text);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (const auto launch = LaunchAt(tokens, i)) return *launch;
  }
  FAIL("no launch in " << text);
  return {};
}

std::string Variable(const std::string& text) { return std::string(ThreadVariable(CppTokens(text), 0)); }

TEST_CASE("a launch is three signs without a gap, or a function of the runtime by name") {
  CHECK(NumLaunches("scale<<<grid, block, 0, stream>>>(x); scale<8><<<g, b>>>(x);") == 2);
  CHECK(NumLaunches("cudaLaunchKernel((void*)scale, grid, block, args, 0, stream);") == 1);
  CHECK(NumLaunches("int a = b << 2; bool c = a < (b << 1); x << < y; a <<<< b;") == 1);
  CHECK(NumLaunches("") == 0);
  CHECK(NumLaunches("<<<") == 1);
}

TEST_CASE("one block and one thread are told where they are written as 1") {
  CHECK(Launch("f<<<1, 256, 0, s>>>()").one_block);
  CHECK_FALSE(Launch("f<<<1, 256, 0, s>>>()").one_thread);
  CHECK(Launch("f<<<n, 1>>>()").one_thread);
  CHECK(Launch("f<<<g(a, b), 1, 0, s>>>()").one_thread);
  CHECK_FALSE(Launch("f<<<n, 1>>>()").one_block);
  for (const char* text : {"f<<<1 + n, 1 + n>>>()", "f<<<n1, m1>>>()", "f<<<16, 16>>>()", "f<<<"}) {
    INFO(text);
    CHECK_FALSE(Launch(text).one_block);
    CHECK_FALSE(Launch(text).one_thread);
  }
}

TEST_CASE("functions that wait and that allocate are known by name") {
  CHECK(Synchronises("cudaDeviceSynchronize"));
  CHECK(Synchronises("cudaMemcpy"));
  CHECK_FALSE(Synchronises("cudaMemcpyAsync"));
  CHECK_FALSE(Synchronises("__syncthreads"));
  CHECK(AllocatesOnGpu("cudaMallocAsync"));
  CHECK_FALSE(AllocatesOnGpu("malloc"));
}

TEST_CASE("a thread's own index is a sum in which it stands bare") {
  CHECK(Variable("int i = blockIdx.x * blockDim.x + threadIdx.x;") == "i");
  CHECK(Variable("const long long at = (long long)blockIdx.x * 256 + threadIdx.x;") == "at");
  CHECK(Variable("int t = threadIdx.x;") == "t");
  CHECK(Variable("int row = blockIdx.y * blockDim.y + threadIdx.y;") == "");
  CHECK(Variable("int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;") == "");
  CHECK(Variable("int base = threadIdx.x * n;") == "");
  CHECK(Variable("int base = n * threadIdx.x;") == "");
  CHECK(Variable("int n = a + b;") == "");
  CHECK(Variable("int t = threadIdx.x") == "");
  CHECK(Variable("threadIdx.x = 1;") == "");
  CHECK(Variable("") == "");
}

TEST_CASE("a pointer's declaration has a star before its name") {
  CHECK(DeclaresPointer(CppTokens("const float* row = x + i * n;"), 0));
  CHECK(DeclaresPointer(CppTokens("float *row = x;"), 0));
  CHECK_FALSE(DeclaresPointer(CppTokens("float v = i * n;"), 0));
  CHECK_FALSE(DeclaresPointer(CppTokens("*p = 1;"), 0));
  CHECK_FALSE(DeclaresPointer(CppTokens("y[i] = a * b;"), 0));
}

}  // namespace
}  // namespace warpsmith
