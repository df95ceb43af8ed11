#include "reward_service/cuda/driver.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith::cuda {
namespace {

TEST_CASE("the GPUs of a machine are told by what they are") {
  const FakeGpu gpu("gpus 2\n");
  const auto gpus = ListGpus();
  REQUIRE(gpus.ok());
  REQUIRE(gpus->size() == 2);
  CHECK(gpus->at(1).index == 1);
  CHECK(gpus->at(1).name == "Fake GPU 1");
  CHECK(gpus->at(1).uuid == "GPU-abababab-abab-abab-abab-ababababab01");
  CHECK(gpus->at(1).driver_version == "13.0");
  CHECK(gpus->at(1).memory_bytes == int64_t{8} << 30);
  CHECK(gpus->at(1).architecture() == "sm_90a");
}

TEST_CASE("an architecture has a suffix where it has instructions of its own") {
  GpuFacts facts;
  facts.capability_major = 8;
  facts.capability_minor = 9;
  CHECK(facts.architecture() == "sm_89");
  facts.capability_major = 12;
  facts.capability_minor = 0;
  CHECK(facts.architecture() == "sm_120a");
}

TEST_CASE("a machine without a GPU, and an old driver, are told apart") {
  const FakeGpu none("gpus 0\n");
  CHECK(absl::IsNotFound(ListGpus().status()));
  const FakeGpu old("version 11080\n");
  CHECK(ListGpus().status() ==
        absl::FailedPreconditionError("the driver knows CUDA 11.8, 13.0 is wanted: install a newer one"));
  const FakeGpu broken("fail cuInit 999\n");
  CHECK(ListGpus().status() == absl::InternalError("cuInit: CUDA_ERROR_OF_THE_SCRIPT (999)"));
}

TEST_CASE("the driver's file is known, for processes that see no search path") {
  const FakeGpu gpu;
  const auto driver = Driver::Load();
  REQUIRE(driver.ok());
  CHECK(std::filesystem::equivalent((*driver)->path(), FakeCudaFolder() / "libcuda.so.1"));
  CHECK(absl::IsResourceExhausted((*driver)->Check(kOutOfMemory, "cuMemCreate")));
}

}  // namespace
}  // namespace warpsmith::cuda
