#include "reward_service/referee/task/room_on_device.h"

#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/held_turn.h"

namespace warpsmith {
namespace {

const absl::Status kNoMemory = absl::ResourceExhaustedError("no memory");

TEST_CASE("memory that others keep is waited for by whoever is alone, for some time, and they end first") {
  DeviceTurn turn;
  FakeMachine machine;
  machine.turn = &turn;
  int num_ended = 0;
  machine.end_waiting = [&] { return ++num_ended > 0; };
  FakeTaskOnDevice device(&machine);
  const auto alone = HoldTurn(&turn, DeviceTurn::Kind::kAlone);
  RoomOnDevice room(&device, absl::Now() + absl::Seconds(60));
  const absl::Time begin = absl::Now();
  int num_attempts = 1;
  CHECK(room.waited() == absl::ZeroDuration());
  while (room.MayBeThere(kNoMemory)) ++num_attempts;
  CHECK(room.waited() > RoomOnDevice::kTimeMax / 2);
  CHECK(absl::Now() - begin < 2 * RoomOnDevice::kTimeMax);
  CHECK(num_attempts > 5);
  CHECK(num_ended == 1);
}

TEST_CASE("nobody waits for memory beside others, or on a device of his own, or where it is not wanting") {
  DeviceTurn turn;
  FakeMachine machine;
  FakeTaskOnDevice device(&machine);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  CHECK_FALSE(RoomOnDevice(&device, deadline).MayBeThere(kNoMemory));
  machine.turn = &turn;
  {
    const auto beside = HoldTurn(&turn, DeviceTurn::Kind::kShared);
    RoomOnDevice room(&device, deadline);
    CHECK_FALSE(room.MayBeThere(kNoMemory));
    CHECK(room.waited() == absl::ZeroDuration());
  }
  const auto alone = HoldTurn(&turn, DeviceTurn::Kind::kAlone);
  CHECK_FALSE(RoomOnDevice(&device, deadline).MayBeThere(absl::InternalError("no device")));
  CHECK_FALSE(RoomOnDevice(&device, absl::Now()).MayBeThere(kNoMemory));
  machine.is_crowded = [] { return true; };  // what else is said may come of that
  CHECK(RoomOnDevice(&device, deadline).MayBeThere(absl::InternalError("no device")));
}

TEST_CASE("whatever keeps a process from starting alone, it is tried once without those who wait there") {
  DeviceTurn turn;
  FakeMachine machine;
  machine.turn = &turn;
  int num_kept = 1;
  machine.end_waiting = [&] { return std::exchange(num_kept, 0) > 0; };
  FakeTaskOnDevice device(&machine);
  const auto alone = HoldTurn(&turn, DeviceTurn::Kind::kAlone);
  const absl::Status no_channels = absl::InternalError("cuDevicePrimaryCtxRetain");
  RoomOnDevice room(&device, absl::Now() + absl::Seconds(60));
  CHECK(room.MayBeThere(no_channels));
  CHECK_FALSE(room.MayBeThere(no_channels));
}

}  // namespace
}  // namespace warpsmith
