// For programs whose tests compile CUDA: where there is no nvcc they are skipped.
#include "core/base/build_info.h"
#include "reward_service/compiler/cuda_toolchain.h"
#include "tests/support/skip_where.h"

namespace warpsmith {
namespace {

const SkipWhere skip([] {
  const absl::StatusOr<Toolchain> host = ProbeToolchain();
  const absl::Status status =
      host.ok() ? ProbeCudaToolchain(*host, GetBuildInfo().torch_dir).status() : host.status();
  return std::string(status.message());
});

}  // namespace
}  // namespace warpsmith
