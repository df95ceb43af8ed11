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

template <typename Value>
std::string Bytes(const std::vector<Value>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

TEST_CASE("numbers are outliers beyond their bounds, and the largest errors are told") {
  const Bench bench(Bytes<float>({1, 2, 3, 4}), Bytes<float>({1, 2.5, 3, 4.25}));
  const auto compare = [&](const Bounds& bounds) {
    return *bench.kernels->CompareReals(RealType::kSingle, 4, bounds, {.elements = bench.left->address()},
                                        bench.right->address());
  };
  CHECK(compare({.absolute = 0.25}).num_outliers == 1);
  CHECK(compare({.absolute = 0.5}).num_outliers == 0);
  CHECK(compare({.relative = 0.125}).num_outliers == 1);
  CHECK(compare({.absolute = 0.25, .reach = 2}).num_outliers == 0);
  const Differences found = compare({});
  CHECK(found.num_outliers == 2);
  CHECK(found.max_absolute_error == 0.5);
  CHECK(found.outlier_error == 0.5);
  CHECK(found.num_from_first_outlier == 3);
  CHECK(found.num_non_finite == 0);
  CHECK(found.num_squares == 0);
}

TEST_CASE("elements have margins of their own, and what their dtype rounds off them") {
  const Bench bench(Bytes<float>({1, 2, 3, 4}), Bytes<float>({1, 2.5, 3, 5}));
  // Of 1, one that is left out of the mean, of 2, and of 0.5 around 4 + 2^13 / 2^18 * 0.5.
  const auto margins = bench.Copy(Bytes<uint32_t>({0x3F800000, 0xBF800000, 0x40000000, 0x3F002000}));
  const Differences found = *bench.kernels->CompareReals(
      RealType::kSingle, 4, {.absolute = 9},
      {.elements = bench.left->address(), .margins = margins->address()}, bench.right->address());
  CHECK(found.num_outliers == 1);
  CHECK(found.outlier_error == 1 - 0x1p-6);
  CHECK(found.num_from_first_outlier == 1);
  CHECK(found.num_squares == 3);
  CHECK(found.squares == 1);
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
