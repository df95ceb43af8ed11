// What a grade from a real GPU tells beside its verdict: clocks, and what a call launches.
#include <cstdio>
#include <string>

#include "tests/gpu/gpu_referee.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the GPU's clocks are told, or why they are not") {
  const v1::Timing timing = Judge(Source(kKernel, kLaunch), /*verify_only=*/false).grade().timing();
  CHECK(timing.has_clocks() != (timing.quality().find("clocks are not known") != std::string::npos));
  if (!timing.has_clocks()) return;
  CHECK(timing.clocks().sm_mhz_min() > 0);
  CHECK(timing.clocks().sm_mhz_max() >= timing.clocks().sm_mhz_min());
  CHECK(timing.clocks().memory_mhz_min() > 0);
}

TEST_CASE("what a call launches is told, in a sealed jail, native or not, and in an open one") {
  const auto native = Judge(Source(kKernel, kLaunch), /*verify_only=*/false).grade();
  const auto own = JudgePython("        return self.own_work(x)\n", /*verify_only=*/false);
  const auto open = JudgePython("        return self.right(x)\n", /*verify_only=*/false);
  for (const v1::Grade* grade : {&native, &own, &open}) {
    std::printf("%s\n", grade->profile().ShortDebugString().c_str());
    REQUIRE(grade->profile().kernels_size() == (grade == &open ? 4 : 1));
    CHECK(grade->profile().num_launches() == grade->profile().kernels_size());
    CHECK(grade->profile().kernels(0).us() > 0);
    if (grade != &open) CHECK(grade->profile().kernels(0).name() == "scaled");
  }
}

}  // namespace
}  // namespace warpsmith
