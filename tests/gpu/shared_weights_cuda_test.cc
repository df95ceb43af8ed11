#include "core/model/shared_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_pattern.h"

namespace warpsmith {

TEST_CASE("an offer describes what was written, and ends with the next or when it is withdrawn") {
  const TemporaryDirectory directory;
  const auto weights = SharedWeights::Create(PatternModel("small"), 0).value();
  const auto first = directory.path() / "first", second = directory.path() / "second";
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  const OfferedMemory zeros = weights->Offer(1, first, deadline).value();
  CHECK(CheckOfferedMemory(zeros, weights->layout()).ok());
  CHECK(FetchDescriptor(first, deadline)->text == MemoryText(1, weights->layout()));
  REQUIRE(cudaMemset(weights->base() + weights->buffer_offset(1), 1, 2) == cudaSuccess);
  const OfferedMemory changed = weights->Offer(2, second, deadline).value();
  CHECK(changed.buffers[0].checksum == zeros.buffers[0].checksum);
  CHECK(changed.buffers[1].checksum != zeros.buffers[1].checksum);
  CHECK_FALSE(std::filesystem::exists(first));
  weights->Withdraw();
  CHECK(absl::IsUnavailable(FetchDescriptor(second, deadline).status()));
}

}  // namespace warpsmith
