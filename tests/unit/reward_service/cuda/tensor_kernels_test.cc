#include "reward_service/cuda/tensor_kernels.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith::cuda {
namespace {

// What the kernels find is shown by tests/gpu/tensor_kernels_gpu_test.cc; the fake's find it, too.
struct Bench {
  // Both with these bytes.
  Bench(const std::string& expected, const std::string& actual)
      : context(*GpuContext::Open(0)),
        kernels(*TensorKernels::Create(context.get())),
        left(Copy(expected)),
        right(Copy(actual)) {}

  std::unique_ptr<GpuMemory> Copy(const std::string& bytes) const {
    auto memory = *GpuMemory::Allocate(context.get(), static_cast<int64_t>(bytes.size()));
    REQUIRE(memory->Write(bytes.data(), 0, static_cast<int64_t>(bytes.size())).ok());
    return memory;
  }
  bool AreSame(int64_t num_bytes, Address offset = 0) const {
    return *kernels->AreSame(num_bytes, left->address() + offset, right->address() + offset);
  }

  const FakeGpu gpu;
  const std::unique_ptr<GpuContext> context;
  const std::unique_ptr<TensorKernels> kernels;
  const std::unique_ptr<GpuMemory> left, right;
};

TEST_CASE("bytes are the same to the last one, wherever they begin") {
  const Bench bench("0123456789abcdefXYZ", "0123456789abcdefXY-");
  CHECK(bench.AreSame(0));
  CHECK(bench.AreSame(16));
  CHECK(bench.AreSame(18));
  CHECK_FALSE(bench.AreSame(19));
  CHECK(bench.AreSame(15, 3));
  CHECK_FALSE(bench.AreSame(16, 3));
}

TEST_CASE("numbers are wrong beyond their bounds, and the largest error is told") {
  const auto bytes = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  const Bench bench(bytes({1, 2, 3, 4}), bytes({1, 2.5, 3, 4.25}));
  const auto wrong = [&](double absolute) {
    return bench.kernels
        ->CompareReals(RealType::kSingle, 4, {.absolute = absolute}, bench.left->address(),
                       bench.right->address())
        ->num_wrong;
  };
  CHECK(wrong(0) == 2);
  CHECK(wrong(0.25) == 1);
  CHECK(wrong(0.5) == 0);
  const auto found =
      bench.kernels->CompareReals(RealType::kSingle, 4, {}, bench.left->address(), bench.right->address());
  CHECK(found->max_absolute_error == 0.5);
}

TEST_CASE("a launch that fails is no comparison") {
  FakeGpu gpu;
  const auto context = *GpuContext::Open(0);
  const auto kernels = *TensorKernels::Create(context.get());
  const auto memory = *GpuMemory::Allocate(context.get(), 8);
  gpu.Say("fail cuLaunchKernel 700\n");
  CHECK_FALSE(kernels->AreSame(8, memory->address(), memory->address()).ok());
}

}  // namespace
}  // namespace warpsmith::cuda
