#include "reward_service/compiler/toolchain.h"

#include <algorithm>
#include <filesystem>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the toolchain names itself, twice the same") {
  const absl::StatusOr<Toolchain> toolchain = ProbeToolchain();
  REQUIRE(toolchain.ok());
  CHECK(toolchain->version.substr(0, 4) == "g++ ");
  CHECK(toolchain->fingerprint.size() == 64);
  CHECK(ProbeToolchain()->fingerprint == toolchain->fingerprint);
}

TEST_CASE("a command's output comes back, and its failure with it") {
  CHECK(*OutputOf({"/bin/echo", "word"}) == "word\n");
  const absl::Status failed = OutputOf({"/bin/sh", "-c", "echo told; exit 3"}).status();
  CHECK(absl::IsInternal(failed));
  CHECK(std::string(failed.message()).find("told") != std::string::npos);
  CHECK_FALSE(OutputOf({"/no/such/program"}).ok());
}

TEST_CASE("what the linker loads beside the compiler is among the paths that a compilation sees") {
  const absl::StatusOr<Toolchain> toolchain = ProbeToolchain();
  REQUIRE(toolchain.ok());
  std::filesystem::path proper = *OutputOf({"/usr/bin/g++", "-print-prog-name=cc1plus"});
  const auto plugin = proper.replace_filename("liblto_plugin.so");
  if (!std::filesystem::exists(plugin)) return;
  const auto& paths = toolchain->system_paths;
  CHECK(std::find(paths.begin(), paths.end(), std::filesystem::canonical(plugin)) != paths.end());
}

}  // namespace
}  // namespace warpsmith
