#include "reward_service/cuda/tensor_kernels.h"

#include <array>
#include <optional>
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
  CHECK(found->num_from_first_wrong == 3);
  CHECK(found->num_non_finite == 0);
}

TEST_CASE("elements that lie apart are gathered in row-major order") {
  const std::string text = "0123456789abcdef";
  const Bench bench(text, std::string(12, '-'));
  const auto gather = [&](const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                          int64_t element_bytes) {
    const std::optional<Places> places = JoinedPlaces(shape, strides);
    REQUIRE(places);
    REQUIRE(
        bench.kernels->Gather(element_bytes, *places, bench.left->address(), bench.right->address()).ok());
    std::string got(12, ' ');
    REQUIRE(bench.right->Read(got.data(), 0, 12).ok());
    return got;
  };
  CHECK(gather({3, 4}, {1, 3}, 1) == "0369147a258b");
  CHECK(gather({2, 1, 3, 2}, {1, 7, 4, 2}, 1) == "02468a13579b");
  CHECK(gather({3, 2}, {1, 3}, 2) ==
        "016723"
        "89"
        "45ab");
  CHECK(absl::IsUnimplemented(bench.kernels->Gather(16, {}, bench.left->address(), bench.right->address())));
}

TEST_CASE("places that lie regularly are joined, and more than four are too many") {
  const auto joined = JoinedPlaces({16, 64, 256, 256}, {64 * 65536, 1, 64 * 256, 64});
  REQUIRE(joined);
  CHECK(joined->extents == std::array<int64_t, 4>{1, 16, 64, 65536});
  CHECK(joined->strides == std::array<int64_t, 4>{0, 64 * 65536, 1, 64});
  CHECK(JoinedPlaces({2, 2, 2, 2}, {1, 2, 4, 8}));
  CHECK_FALSE(JoinedPlaces({2, 2, 2, 2, 2}, {1, 2, 4, 8, 16}));
  CHECK(JoinedPlaces({}, {}));
  CHECK_FALSE(JoinedPlaces({2}, {}));
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
