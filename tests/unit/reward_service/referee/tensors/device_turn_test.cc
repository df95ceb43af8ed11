#include "reward_service/referee/tensors/device_turn.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/held_turn.h"

namespace warpsmith {
namespace {

using Kind = DeviceTurn::Kind;

std::unique_ptr<DeviceTurn::Held> Take(DeviceTurn& turn, Kind kind) { return HoldTurn(&turn, kind); }

// Long enough for a thread to have come as far as it can.
void LetOthersRun() { absl::SleepFor(absl::Milliseconds(100)); }

TEST_CASE("several share a device, and who is alone has nobody beside") {
  DeviceTurn turn;
  std::atomic<int> num_shared = 0, num_alone = 0, num_wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, is_alone = i % 4 == 0] {
      for (int round = 0; round < 500; ++round) {
        const auto held = Take(turn, is_alone ? Kind::kAlone : Kind::kShared);
        std::atomic<int>& mine = is_alone ? num_alone : num_shared;
        ++mine;
        if (num_alone > 1 || (num_alone > 0 && num_shared > 0)) ++num_wrong;
        --mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
  const auto first = Take(turn, Kind::kShared);
  const auto second = Take(turn, Kind::kShared);  // would wait for ever for a lock of one
  CHECK(second->is_shared());
  CHECK(turn.is_shared());
}

TEST_CASE("a turn is shared as long as one of those who share it has it") {
  DeviceTurn turn;
  CHECK_FALSE(turn.is_shared());
  auto first = Take(turn, Kind::kShared), second = Take(turn, Kind::kShared);
  first.reset();
  CHECK(turn.is_shared());
  second.reset();
  CHECK_FALSE(turn.is_shared());
  const auto alone = Take(turn, Kind::kAlone);
  CHECK_FALSE(turn.is_shared());
}

TEST_CASE(
    "who wants to share comes after those who wait to be alone, three at most, and then before the next") {
  DeviceTurn turn;
  std::string order;
  auto first = Take(turn, Kind::kShared);
  std::vector<std::thread> threads;
  const auto wait = [&](Kind kind, char name) {
    threads.emplace_back([&, kind, name] {
      const auto held = Take(turn, kind);
      order += name;
      if (kind == Kind::kAlone) LetOthersRun();
    });
    LetOthersRun();
  };
  wait(Kind::kAlone, 'a');
  wait(Kind::kShared, 's');
  for (const char name : {'b', 'c', 'd'}) wait(Kind::kAlone, name);
  CHECK(order.empty());
  first.reset();
  for (std::thread& thread : threads) thread.join();
  CHECK(order == "abcsd");
}

TEST_CASE("who has waited long enough for a device goes away, and others as if he had not asked") {
  DeviceTurn turn;
  const auto soon = [] { return absl::Now() + absl::Milliseconds(50); };
  auto sharing = Take(turn, Kind::kShared);
  CHECK(DeviceTurn::Take(&turn, Kind::kAlone, soon()).status().code() == absl::StatusCode::kDeadlineExceeded);
  (void)Take(turn, Kind::kShared);  // nobody waits to be alone any more
  // Of two that wait to be alone the first goes away: the second has it, and a sharer that waited is let in.
  std::atomic<bool> is_let_in = false;
  std::thread first([&] { CHECK_FALSE(DeviceTurn::Take(&turn, Kind::kAlone, soon()).ok()); });
  LetOthersRun();
  first.join();
  std::thread impatient([&] {
    const auto late = absl::Now() + absl::Seconds(1);
    CHECK_FALSE(DeviceTurn::Take(&turn, Kind::kAlone, late).ok());
  });
  LetOthersRun();
  std::thread sharer([&] {
    const auto held = Take(turn, Kind::kShared);
    is_let_in = true;
  });
  LetOthersRun();
  CHECK_FALSE(is_let_in);
  impatient.join();
  sharer.join();
  CHECK(is_let_in);
  sharing.reset();
  // A sharer that goes away is not counted among those who are let in.
  {
    const auto alone = Take(turn, Kind::kAlone);
    CHECK_FALSE(DeviceTurn::Take(&turn, Kind::kShared, soon()).ok());
  }
  CHECK_FALSE(turn.is_shared());
  CHECK(DeviceTurn::Take(&turn, Kind::kAlone, absl::InfinitePast()).ok());  // it is free
}

TEST_CASE("company is several who share") {
  DeviceTurn turn;
  const auto first = Take(turn, Kind::kShared);
  CHECK_FALSE(turn.AwaitCompany(absl::Now()));
  const auto second = Take(turn, Kind::kShared);
  CHECK(turn.AwaitCompany(absl::Now()));
}

TEST_CASE("of no device nothing is held") {
  const auto first = HoldTurn(nullptr, Kind::kAlone);
  const auto second = HoldTurn(nullptr, Kind::kAlone);
  CHECK_FALSE(second->is_shared());
}

}  // namespace
}  // namespace warpsmith
