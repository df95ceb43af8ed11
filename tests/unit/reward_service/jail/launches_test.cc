#include "reward_service/jail/launches.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/kernel_name.h"
#include "reward_service/jail/launch_messages.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using jail::LaunchedKernel, jail::Profiled;

KernelLaunch Launch(std::string symbol, int64_t num_blocks = 8) {
  return {.symbol = std::move(symbol), .grid = {num_blocks, 1, 1}, .block = {256, 1, 1}, .registers = 40};
}

TEST_CASE("launches of a kernel are added up, and the kernels that took the longest come first") {
  Launches launches;
  launches.AddKernel(Launch("_Z4fillPf"), 2000);
  launches.AddKernel(Launch("_Z4castPfPKfi"), 3000);
  launches.AddKernel(Launch("_Z4fillPf"), 2500);
  launches.AddKernel(Launch("_Z4fillPf", 16), 100);  // another grid
  launches.AddOther();
  const nlohmann::json told = launches.ToMessage();
  CHECK(Is<Profiled>(told));
  CHECK(Read(told, Profiled::num_launches) == 5);
  const nlohmann::json& kernels = *Find(told, Profiled::kernels);
  REQUIRE(kernels.size() == 3);
  CHECK(kernels[0] == nlohmann::json{{LaunchedKernel::name, "fill"},
                                     {LaunchedKernel::grid, {8, 1, 1}},
                                     {LaunchedKernel::block, {256, 1, 1}},
                                     {LaunchedKernel::registers, 40},
                                     {LaunchedKernel::shared_bytes, 0},
                                     {LaunchedKernel::num_launches, 2},
                                     {LaunchedKernel::us, 4.5}});
  CHECK(Read(kernels[1], LaunchedKernel::name) == "cast");
  CHECK(Read(kernels[2], LaunchedKernel::us) == 0.1);
}

TEST_CASE("of many kernels the longest are told, all launches are counted, and names are cut") {
  Launches launches;
  const size_t num_kernels = Profiled::kernels.num_max + 8;
  for (size_t i = 0; i < num_kernels; ++i)
    launches.AddKernel(Launch(absl::StrCat(std::string(200, 'k'), i)), static_cast<int64_t>(1000 * i));
  launches.AddKernel(Launch("unended"), -5);
  const nlohmann::json told = launches.ToMessage();
  const nlohmann::json& kernels = told.at(Profiled::kernels.name);
  REQUIRE(kernels.size() == Profiled::kernels.num_max);
  CHECK(Read(kernels.front(), LaunchedKernel::us) == static_cast<double>(num_kernels - 1));
  CHECK(Read(kernels.back(), LaunchedKernel::us) == 8);
  CHECK(kernels.front().at(LaunchedKernel::name.name).get<std::string>().size() == kKernelNameBytesMax);
  CHECK(Read(told, Profiled::num_launches) == static_cast<int64_t>(num_kernels) + 1);
}

TEST_CASE("a call that launches nothing says so") {
  const nlohmann::json told = Launches().ToMessage();
  CHECK(Find(told, Profiled::kernels)->empty());
  CHECK(Read(told, Profiled::num_launches) == 0);
}

}  // namespace
}  // namespace warpsmith
