#include "core/distributed/broadcast_place.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a receiver's place in a broadcast is one behind the sender, by an id of NCCL's") {
  const std::string id(kBroadcastIdBytes, 'x');
  CHECK(CheckReceiverPlace({id, 2, 1}).ok());
  CHECK(CheckReceiverPlace({id, 5, 4}).ok());
  for (const BroadcastPlace& wrong :
       {BroadcastPlace{"", 2, 1}, BroadcastPlace{id + "x", 2, 1}, BroadcastPlace{id, 1, 1},
        BroadcastPlace{id, kBroadcastRanksMax + 1, 1}, BroadcastPlace{id, 2, 0}, BroadcastPlace{id, 2, 2},
        BroadcastPlace{id, 2, -1}}) {
    const absl::Status status = CheckReceiverPlace(wrong);
    INFO(status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("give "));
  }
}

}  // namespace warpsmith
