#include "reward_service/cuda/late_words.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith::cuda {
namespace {

// That the kernel does it, too, is shown by tests/gpu/tensor_kernels_gpu_test.cc.
struct Bench {
  static constexpr int64_t kBytes = 4 * LateWords::kBytes;
  Bench() {
    REQUIRE(from->Write("first---second--third---fourth--", 0, kBytes).ok());
    REQUIRE(to->Fill('.', 0, kBytes).ok());
  }
  static std::string Text(const GpuMemory& memory) {
    std::string text(kBytes, ' ');
    REQUIRE(memory.Read(text.data(), 0, kBytes).ok());
    return text;
  }
  LateWords::Pair Pair(Address first, Address second) const {
    const Address a = first * LateWords::kBytes, b = second * LateWords::kBytes;
    return {from->address() + a, from->address() + b, to->address() + a, to->address() + b};
  }

  FakeGpu gpu;
  const std::unique_ptr<GpuContext> context = *GpuContext::Open(0);
  const std::unique_ptr<GpuMemory> from = *GpuMemory::Allocate(context.get(), kBytes);
  const std::unique_ptr<GpuMemory> to = *GpuMemory::Allocate(context.get(), kBytes);
  const std::unique_ptr<LateWords> words = *LateWords::Create(context.get());
};

TEST_CASE("words are given once, where they belong") {
  Bench bench;
  const std::string dots(Bench::kBytes, '.');
  CHECK(bench.words->empty());
  REQUIRE(bench.words->Hold({bench.Pair(3, 0)}).ok());
  CHECK_FALSE(bench.words->empty());
  CHECK(Bench::Text(*bench.to) == dots);
  REQUIRE(bench.words->Give().ok());
  CHECK(Bench::Text(*bench.to) == "first---................fourth--");
  CHECK(bench.words->empty());
  REQUIRE(bench.to->Fill('.', 0, Bench::kBytes).ok());
  REQUIRE(bench.words->Give().ok());
  CHECK(Bench::Text(*bench.to) == dots);
}

TEST_CASE("words that are exchanged twice are as before") {
  Bench bench;
  REQUIRE(bench.words->Hold({bench.Pair(0, 2), bench.Pair(1, 3)}).ok());
  REQUIRE(bench.words->Exchange(0, 1).ok());
  CHECK(Bench::Text(*bench.from) == "third---second--first---fourth--");
  REQUIRE(bench.words->Exchange(1, 1).ok());
  CHECK(Bench::Text(*bench.from) == "third---fourth--first---second--");
  REQUIRE(bench.words->Exchange(0, 2).ok());
  CHECK(Bench::Text(*bench.from) == "first---second--third---fourth--");
  CHECK(Bench::Text(*bench.to) == std::string(Bench::kBytes, '.'));
  REQUIRE(bench.words->Hold({}).ok());
  CHECK(bench.words->Exchange(0, 0).ok());
  CHECK(bench.words->empty());
}

TEST_CASE("a GPU that fails holds no words, and says so") {
  Bench bench;
  REQUIRE(bench.words->Hold({bench.Pair(0, 1)}).ok());
  bench.gpu.Say("fail cuLaunchKernel 700\n");
  CHECK_FALSE(bench.words->Exchange(0, 1).ok());
  CHECK_FALSE(bench.words->Give().ok());
  bench.gpu.Say("fail cuMemcpyHtoD_v2 700\n");
  CHECK_FALSE(bench.words->Hold({bench.Pair(0, 1)}).ok());
  CHECK(bench.words->empty());
}

}  // namespace
}  // namespace warpsmith::cuda
