#include "core/base/transfer_timeout.h"

#include <limits>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("the time for weights grows with their bytes, and has an end whatever a manifest says") {
  CHECK(TransferTimeout(0) == absl::Minutes(2));
  CHECK(TransferTimeout(-1) == absl::Minutes(2));
  CHECK(TransferTimeout(65'000'000'000) == absl::Minutes(2) + absl::Seconds(1300));
  CHECK(TransferTimeout(std::numeric_limits<int64_t>::max()) == TransferTimeout(kTransferBytesMax));
  CHECK(TransferTimeout(kTransferBytesMax) < absl::Hours(13));
}

}  // namespace warpsmith
