#include "reward_service/referee/tensors/device_turn.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Kind = DeviceTurn::Kind;

std::unique_ptr<DeviceTurn::Held> Take(DeviceTurn& turn, Kind kind, TurnFor what = TurnFor::kDrawing) {
  return std::make_unique<DeviceTurn::Held>(&turn, kind, what);
}

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

TEST_CASE("who wants to share comes after one who waits to be alone, and then before the next of those") {
  DeviceTurn turn;
  std::string order;
  auto first = Take(turn, Kind::kShared);
  std::thread alone([&] {
    const auto held = Take(turn, Kind::kAlone);
    order += 'a';
    LetOthersRun();
  });
  LetOthersRun();
  std::thread shared([&] {
    const auto held = Take(turn, Kind::kShared);
    order += 's';
  });
  LetOthersRun();
  std::thread next_alone([&] {
    const auto held = Take(turn, Kind::kAlone);
    order += 'n';
  });
  LetOthersRun();
  CHECK(order.empty());
  first.reset();
  for (std::thread* thread : {&alone, &shared, &next_alone}) thread->join();
  CHECK(order == "asn");
}

TEST_CASE("a report counts turns since the last one, by what they were for") {
  DeviceTurn turn;
  CHECK(turn.TakeReport().empty());
  Take(turn, Kind::kShared, TurnFor::kLoading);
  Take(turn, Kind::kShared, TurnFor::kLoading);
  Take(turn, Kind::kAlone, TurnFor::kTiming);
  CHECK(turn.TakeReport() == "time 1 (0.00 + 0.00 s), load 2 (0.00 + 0.00 s)");
  CHECK(turn.TakeReport().empty());
}

TEST_CASE("of no device nothing is held") {
  const DeviceTurn::Held first(nullptr, Kind::kAlone, TurnFor::kTiming);
  const DeviceTurn::Held second(nullptr, Kind::kAlone, TurnFor::kTiming);
  CHECK_FALSE(second.is_shared());
}

}  // namespace
}  // namespace warpsmith
