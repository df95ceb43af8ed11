// Children that wait at a start line.
#include <sched.h>

#include <tuple>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "reward_service/referee/process/child_process.h"
#include "tests/support/catch.h"
#include "tests/support/forked_child.h"
#include "tests/support/mapped_start_page.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kTimeout = absl::Milliseconds(300);

// Answers the sum of its rooms, once it may begin with them.
void SumRooms(int socket, const MappedStartPage& page) {
  for (uint32_t number = 1;; ++number) {
    AwaitPacket(socket);
    page->ready = number;
    while (page->go != number) absl::SleepFor(absl::Microseconds(10));
    uint32_t sum = 0;
    for (uint32_t call = 0; call < page->num_calls; ++call) sum += page->rooms[call];
    page->done = number;
    if (!SendPacket(socket, {{"sum", sum}}).ok()) return;
  }
}

TEST_CASE("a child that waits at the line is told its rooms there, when the clock starts") {
  const auto line = StartLine::Create();
  REQUIRE(line.ok());
  const MappedStartPage page(**line);
  const auto child = ForkChild([&](int socket, int) { SumRooms(socket, page); });
  REQUIRE(child->Stop().ok());
  for (const size_t room : {size_t{3}, size_t{5}}) {
    (*line)->Next();
    bool began_too_soon = false;
    int num_stops = 0;
    const auto timed = child->StartOnTheClock({{"op", "run"}}, kPatience, line->get(), {room, room + 1},
                                              {.occupied = [&] { began_too_soon = (*line)->is_done(); },
                                               .before_start = [&] { began_too_soon |= (*line)->is_done(); },
                                               .before_stop = [&] { ++num_stops; }});
    REQUIRE(timed.ok());
    CHECK(timed->answer.fields["sum"] == 2 * room + 1);
    CHECK_FALSE(began_too_soon);
    CHECK(num_stops == 1);
    CHECK(StateOf(child->pid()) == 'T');
  }
}

int NumCores() {
  cpu_set_t cores;
  WS_CHECK(sched_getaffinity(0, sizeof(cores), &cores) == 0);
  return CPU_COUNT(&cores);
}

// Of those that this process may use.
void RunOnFirstCore(pid_t pid) {
  cpu_set_t cores, first;
  WS_CHECK(sched_getaffinity(0, sizeof(cores), &cores) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  CPU_ZERO(&first);
  CPU_SET(core, &first);
  WS_CHECK(sched_setaffinity(pid, sizeof(first), &first) == 0);
}

// What a program's threads can do with the page, which lies in their memory.
TEST_CASE("words that come too soon gain nothing: what follows them is on a clock") {
  constexpr absl::Duration kWork = absl::Milliseconds(80);
  struct Child {
    bool says_done = false;                            // before its work
    absl::Duration comes_late = absl::ZeroDuration();  // to the line
  };
  const auto timed = [&](const Child& what) {
    const auto line = StartLine::Create();
    REQUIRE(line.ok());
    const MappedStartPage page(**line);
    page->ready = 2;  // of a run to come
    page->done = 2;
    const auto child = ForkChild([&](int socket, int) {
      AwaitPacket(socket);
      absl::SleepFor(what.comes_late);
      page->ready = 1;
      while (page->go != 1) absl::SleepFor(absl::Microseconds(10));
      if (what.says_done) page->done = 1;
      absl::SleepFor(kWork);
      page->done = 1;
      (void)SendPacket(socket, {{"op", "done"}});
      StaySilent(socket);
    });
    REQUIRE(child->Stop().ok());
    RunOnFirstCore(child->pid());
    (*line)->Next();
    auto answer = child->StartOnTheClock({{"op", "run"}}, kPatience, line->get(), {}, {});
    REQUIRE(answer.ok());
    return *std::move(answer);
  };
  const double work_seconds = absl::ToDoubleSeconds(kWork);
  CHECK(timed({}).seconds >= work_seconds);
  CHECK(timed({.says_done = true}).answer_seconds >= work_seconds / 2);
  // On one core for both, what keeps the device busy tells it.
  if (NumCores() > 1) CHECK(timed({.comes_late = kWork}).late_seconds >= work_seconds / 2);
}

TEST_CASE("a child that answers and never comes to the line, or never answers, is stopped") {
  const auto line = StartLine::Create();
  REQUIRE(line.ok());
  const auto run = [&](void (*child_does)(int socket)) {
    (*line)->Next();
    const auto child = ForkChild([=](int socket, int) { child_does(socket); });
    REQUIRE(child->Stop().ok());
    const auto timed = child->StartOnTheClock({{"op", "run"}}, kTimeout, line->get(), {}, {});
    CHECK(StateOf(child->pid()) == 'T');
    return timed.status();
  };
  CHECK(run(Count).ok());
  CHECK(absl::IsDeadlineExceeded(run(StaySilent)));
}

TEST_CASE("a child that starts in time and says nothing has overtime once") {
  const auto line = StartLine::Create();
  REQUIRE(line.ok());
  const MappedStartPage page(**line);
  const auto run = [&](absl::Duration ready_after, absl::Duration answers_after, absl::Duration overtime) {
    const uint32_t number = (*line)->Next();
    const auto child = ForkChild([&](int socket, int) {
      AwaitPacket(socket);
      absl::SleepFor(ready_after);
      page->ready = number;
      absl::SleepFor(answers_after);
      (void)SendPacket(socket, {{"op", "done"}});
      StaySilent(socket);
    });
    REQUIRE(child->Stop().ok());
    int num_overtimes = 0, num_stops = 0;
    const LineSteps steps{.overtime = [&] { return ++num_overtimes, overtime; },
                          .before_stop = [&] { ++num_stops; }};
    const auto timed = child->StartOnTheClock({{"op", "run"}}, kTimeout, line->get(), {}, steps);
    CHECK(StateOf(child->pid()) == 'T');
    return std::make_tuple(timed.status().code(), num_overtimes, num_stops);
  };
  constexpr absl::Duration kNone = absl::ZeroDuration();
  CHECK(run(kNone, kNone, kPatience) == std::make_tuple(absl::StatusCode::kOk, 0, 1));
  CHECK(run(kNone, 3 * kTimeout, kPatience) == std::make_tuple(absl::StatusCode::kOk, 1, 1));
  CHECK(run(kNone, kPatience, kTimeout) == std::make_tuple(absl::StatusCode::kDeadlineExceeded, 1, 0));
  CHECK(run(3 * kTimeout, kPatience, kPatience) ==
        std::make_tuple(absl::StatusCode::kDeadlineExceeded, 0, 0));
}

}  // namespace
}  // namespace warpsmith
