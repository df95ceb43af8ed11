#include "reward_service/cuda/late_words.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith::cuda {
namespace {

// That the kernels do it, too, is shown by tests/gpu/tensor_kernels_gpu_test.cc.
struct Bench {
  Bench() {
    REQUIRE(from->Write("abcdefghijkl", 0, 12).ok());
    REQUIRE(to->Fill('-', 0, 12).ok());
  }
  static std::string Text(const GpuMemory& memory) {
    std::string text(12, ' ');
    REQUIRE(memory.Read(text.data(), 0, 12).ok());
    return text;
  }
  LateWords::Word Word(Address offset) const { return {from->address() + offset, to->address() + offset}; }

  FakeGpu gpu;
  const std::unique_ptr<GpuContext> context = *GpuContext::Open(0);
  const std::unique_ptr<GpuMemory> from = *GpuMemory::Allocate(context.get(), 12);
  const std::unique_ptr<GpuMemory> to = *GpuMemory::Allocate(context.get(), 12);
  const std::unique_ptr<LateWords> words = *LateWords::Create(context.get());
};

TEST_CASE("words are given once, where they belong") {
  Bench bench;
  CHECK(bench.words->empty());
  REQUIRE(bench.words->Hold({bench.Word(8), bench.Word(0)}).ok());
  CHECK_FALSE(bench.words->empty());
  CHECK(Bench::Text(*bench.to) == "------------");
  REQUIRE(bench.words->Give().ok());
  CHECK(Bench::Text(*bench.to) == "abcd----ijkl");
  CHECK(bench.words->empty());
  REQUIRE(bench.to->Fill('-', 0, 12).ok());
  REQUIRE(bench.words->Give().ok());
  CHECK(Bench::Text(*bench.to) == "------------");
}

TEST_CASE("words that are inverted twice are as before, those that are there twice too") {
  Bench bench;
  REQUIRE(bench.words->Hold({bench.Word(4), bench.Word(8), bench.Word(8)}).ok());
  REQUIRE(bench.words->Invert(0, 1).ok());
  CHECK(Bench::Text(*bench.from) == "abcd\x9a\x99\x98\x97ijkl");
  REQUIRE(bench.words->Invert(1, 2).ok());
  CHECK(Bench::Text(*bench.from).substr(8) == "ijkl");
  REQUIRE(bench.words->Invert(0, 3).ok());
  CHECK(Bench::Text(*bench.from) == "abcdefghijkl");
  REQUIRE(bench.words->Hold({}).ok());
  CHECK(bench.words->Invert(0, 0).ok());
  CHECK(bench.words->empty());
}

TEST_CASE("a GPU that fails holds no words, and says so") {
  Bench bench;
  REQUIRE(bench.words->Hold({bench.Word(0)}).ok());
  bench.gpu.Say("fail cuLaunchKernel 700\n");
  CHECK_FALSE(bench.words->Invert(0, 1).ok());
  CHECK_FALSE(bench.words->Give().ok());
  bench.gpu.Say("fail cuMemcpyHtoD_v2 700\n");
  CHECK_FALSE(bench.words->Hold({bench.Word(0)}).ok());
  CHECK(bench.words->empty());
}

}  // namespace
}  // namespace warpsmith::cuda
