// Over the driver and the CUPTI of tests/support/fake_cuda, in this process.
#include "reward_service/jail/launch_trace.h"

#include "reward_service/cuda/driver.h"
#include "reward_service/jail/launch_messages.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

using jail::LaunchedKernel, jail::Profiled;

void Launch(const char* symbol, unsigned num_blocks) {
  const cuda::DriverApi& api = (*cuda::Driver::Load())->api();
  cuda::Function kernel = nullptr;
  REQUIRE(api.cuModuleGetFunction(&kernel, nullptr, symbol) == 0);
  REQUIRE(api.cuLaunchKernel(kernel, num_blocks, 2, 1, 128, 1, 1, 1024, nullptr, nullptr, nullptr) == 0);
}

TEST_CASE("without CUPTI nothing is traced, and the reason is told") {
  CHECK(absl::IsNotFound(LoadCupti("/nowhere/libcupti.so.13")));
  const FakeGpu gpu;
  CHECK(absl::IsNotFound(LoadCupti((FakeCudaFolder() / "libcuda.so.1").c_str())));  // lacks its functions
  CHECK(absl::IsFailedPrecondition(BeginTrace()));
  CHECK(absl::IsFailedPrecondition(EndTrace().status()));
}

TEST_CASE("what is launched between begin and end is told, and nothing else") {
  const FakeGpu gpu;
  REQUIRE(LoadCupti((FakeCudaFolder() / "libcupti.so.13").c_str()).ok());
  const cuda::DriverApi& api = (*cuda::Driver::Load())->api();
  Launch("_Z6beforePf", 1);
  REQUIRE(BeginTrace().ok());
  Launch("_Z4castPfPKfi", 3);
  Launch("_Z4fillPf", 50);
  Launch("_Z4castPfPKfi", 3);
  char byte = 1;
  REQUIRE(api.cuMemsetD8Async(reinterpret_cast<cuda::Address>(&byte), 0, 1, nullptr) == 0);
  const absl::StatusOr<Launches> launches = EndTrace();
  REQUIRE(launches.ok());
  Launch("_Z5afterPf", 1);
  const nlohmann::json told = launches->ToMessage();
  CHECK(Read(told, Profiled::num_launches) == 4);
  const nlohmann::json& kernels = told.at(Profiled::kernels.name);
  REQUIRE(kernels.size() == 2);
  CHECK(Read(kernels[0], LaunchedKernel::name) == "fill");
  CHECK(Read(kernels[0], LaunchedKernel::us) == 100);
  CHECK(Read(kernels[1], LaunchedKernel::name) == "cast");
  CHECK(Read(kernels[1], LaunchedKernel::num_launches) == 2);
  CHECK(kernels[1].at(LaunchedKernel::grid.name) == nlohmann::json{3, 2, 1});
  CHECK(kernels[1].at(LaunchedKernel::block.name) == nlohmann::json{128, 1, 1});
  CHECK(Read(kernels[1], LaunchedKernel::registers) == 40);
  CHECK(Read(kernels[1], LaunchedKernel::shared_bytes) == 1040);
}

TEST_CASE("a second trace begins anew, and of more launches than have room some are missing") {
  const FakeGpu gpu;
  REQUIRE(LoadCupti((FakeCudaFolder() / "libcupti.so.13").c_str()).ok());
  REQUIRE(BeginTrace().ok());
  constexpr int kMany = 400'000;
  for (int i = 0; i < kMany; ++i) (void)(*cuda::Driver::Load())->api().cuMemsetD8Async(0, 0, 0, nullptr);
  const absl::StatusOr<Launches> launches = EndTrace();
  REQUIRE(launches.ok());
  const int64_t number = Read(launches->ToMessage(), Profiled::num_launches);
  CHECK(number > 200'000);
  CHECK(number < kMany);
  REQUIRE(BeginTrace().ok());
  CHECK(Read(EndTrace()->ToMessage(), Profiled::num_launches) == 0);
}

}  // namespace
}  // namespace warpsmith
