// Main of tests that compile CUDA: where there is no nvcc they are skipped, with the reason.
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include "core/base/build_info.h"
#include "reward_service/compiler/cuda_toolchain.h"
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE
  const absl::StatusOr<warpsmith::Toolchain> host = warpsmith::ProbeToolchain();
  absl::Status status = host.status();
  if (host.ok()) {
    status = warpsmith::ProbeCudaToolchain(*host, warpsmith::GetBuildInfo().torch_dir).status();
  }
  if (!status.ok()) {
    std::printf("skipped: %s\n", std::string(status.message()).c_str());
    return kSkipped;
  }
  return Catch::Session().run(argc, argv);
}
