#include "core/model/training/run_torch.h"

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("what LibTorch throws becomes a status that says what was done") {
  const absl::Status failed =
      RunTorch("a sum", /*keeps_graph=*/false, [] { at::ones({2}).add(at::ones({3})); });
  CHECK(absl::IsInternal(failed));
  CHECK_THAT(std::string(failed.message()), Catch::StartsWith("a sum failed in LibTorch: "));
  const absl::Status full = RunTorch("a layer", /*keeps_graph=*/false,
                                     [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "no room"); });
  CHECK(absl::IsResourceExhausted(full));
  CHECK_THAT(std::string(full.message()), Catch::StartsWith("a layer: ") && Catch::Contains("no room"));
}

TEST_CASE("a graph is kept where it is wanted alone") {
  for (const bool keeps : {false, true}) {
    CHECK(RunTorch("nothing", keeps, [&] { CHECK(c10::GradMode::is_enabled() == keeps); }).ok());
  }
}

}  // namespace
}  // namespace warpsmith
