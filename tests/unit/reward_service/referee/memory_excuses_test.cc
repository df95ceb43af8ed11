// Judgements on a fake device that is one for all, of whose memory others have too much.
#include <memory>
#include <optional>
#include <utility>

#include "tests/support/catch.h"
#include "tests/unit/reward_service/referee/fake_bench.h"

namespace warpsmith {
namespace {

TEST_CASE("memory that is wanting is told as that, once the device was seen to be healthy") {
  DeviceTurn turn;
  for (const bool is_broken : {false, true}) {
    FakeBench bench;
    bench.machine.turn = &turn;
    bench.machine.lost = absl::ResourceExhaustedError("no memory");
    bench.machine.is_broken = is_broken;
    const absl::Status status = bench.TryRun().status();
    CHECK(status.code() ==
          (is_broken ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted));
    CHECK(bench.machine.num_health_checks == 1);
  }
}

TEST_CASE("a fault for want of memory that those keep who wait to be timed is seen once more without them") {
  DeviceTurn turn;
  const Fault no_memory = {v1::VERDICT_RUNTIME_ERROR, "CUDA error: out of memory"};
  for (const bool is_timed : {false, true}) {
    for (const bool is_kept_for_good : {false, true}) {
      FakeBench bench;
      bench.machine.turn = &turn;
      bench.machine.num_kept = 1;  // of another judgement
      bench.machine.keeps_others = true;
      const auto lacks = [&] { return is_kept_for_good || bench.machine.num_kept > 0; };
      if (is_timed) {
        bench.machine.sealed.timed_calls = [&](int) {
          return lacks() ? CallResult{60, no_memory} : CallResult{60};
        };
      } else {
        bench.machine.sealed.calls = [&](const Draw&, int) -> std::optional<Fault> {
          return lacks() ? std::optional(no_memory) : std::nullopt;
        };
      }
      CHECK(bench.Run().verdict() == (is_kept_for_good ? v1::VERDICT_RUNTIME_ERROR : v1::VERDICT_CORRECT));
      CHECK(bench.machine.num_kept == 0);
    }
  }
}

// Of a candidate that has one fault, at this call of those that are timed, beside a process that another judgement
// keeps.
v1::Verdict VerdictOfOneFault(const Fault& fault, int at_call) {
  DeviceTurn turn;
  FakeBench bench;
  bench.machine.turn = &turn;
  bench.machine.num_kept = 1;
  bench.machine.keeps_others = true;
  int num_calls = 0;
  bench.machine.sealed.timed_calls = [&](int) {
    return ++num_calls == at_call ? CallResult{60, fault} : CallResult{60};
  };
  const v1::Verdict verdict = bench.Run().verdict();
  CHECK(num_calls >= at_call);
  return verdict;
}

TEST_CASE("who has seen a time of its own is not timed again for what it says of memory") {
  const Fault no_memory = {v1::VERDICT_RUNTIME_ERROR, "CUDA error: out of memory"};
  CHECK(VerdictOfOneFault(no_memory, 1) == v1::VERDICT_CORRECT);
  CHECK(VerdictOfOneFault(no_memory, 20) == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("memory that others keep is an excuse once a judgement, and then there are none who keep any") {
  DeviceTurn turn;
  FakeBench bench;
  bench.machine.turn = &turn;
  bench.machine.judges_errors_again = true;
  bench.machine.keeps_others = true;
  int num_beside_kept = 0;
  bench.machine.sealed.calls = [&](const Draw&, int) {
    num_beside_kept += bench.machine.num_kept > 0 ? 1 : 0;
    bench.machine.num_kept = 1;  // by others, again and again
    return std::optional(Fault{v1::VERDICT_RUNTIME_ERROR, "CUDA error: out of memory"});
  };
  bench.machine.open.calls = bench.machine.sealed.calls;
  CHECK(bench.Run().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(bench.machine.num_started == 4);  // beside others, alone, once more, and in the open room
  CHECK(num_beside_kept == 1);            // the second of these
}

TEST_CASE("a candidate that lacks memory which tasks keep is judged again; one that takes too much is not") {
  DeviceTurn turn;
  for (const char* reason : {"CUDA error: out of memory", "illegal memory access"}) {
    for (const bool tasks_keep_it : {false, true}) {
      for (const bool is_timed : {false, true}) {
        FakeBench bench;
        bench.machine.turn = &turn;
        bench.machine.has_plenty = !tasks_keep_it;
        bench.machine.is_crowded = [&] { return tasks_keep_it; };
        const Fault fault{v1::VERDICT_RUNTIME_ERROR, reason};
        if (is_timed) {
          bench.machine.sealed.timed_calls = [&](int) { return CallResult{60, fault}; };
        } else {
          bench.machine.sealed.calls = FaultAt(0, fault);
        }
        const auto measurement = bench.TryRun();
        if (tasks_keep_it && SaysWantOfMemory(reason)) {
          CHECK(absl::IsResourceExhausted(measurement.status()));
        } else {
          REQUIRE(measurement.ok());
          CHECK(measurement->grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
        }
      }
    }
  }
}

TEST_CASE(
    "nobody is alone beside processes that are kept while memory is scarce: it could be slower for it") {
  DeviceTurn turn;
  for (const bool has_plenty : {true, false}) {
    FakeBench bench;
    bench.machine.turn = &turn;
    bench.machine.keeps_others = true;
    bench.machine.num_kept = 1;
    bench.machine.has_plenty = has_plenty;
    bench.machine.sealed.timed_calls = [&](int) {
      CHECK((bench.machine.num_kept > 0) == has_plenty);
      return CallResult{60};
    };
    CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  }
}

TEST_CASE("references of all tasks end before a candidate is timed while memory is scarce") {
  DeviceTurn turn;
  for (const bool has_plenty : {true, false}) {
    FakeBench bench;
    bench.machine.turn = &turn;
    bench.machine.has_plenty = has_plenty;
    bench.machine.sealed.timed_calls = [&](int) {
      CHECK((bench.machine.num_references_ended > 0) == !has_plenty);
      return CallResult{60};
    };
    CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  }
}

TEST_CASE("a candidate is judged again, not timed, while tasks that are judged leave little memory") {
  DeviceTurn turn;
  struct Beside {
    bool has_plenty, is_crowded, judges_others;
  };
  for (const Beside beside : {Beside{true, true, true}, Beside{false, false, true},
                              Beside{false, true, false}, Beside{false, true, true}}) {
    const bool has_room = beside.has_plenty || !beside.is_crowded || !beside.judges_others;
    FakeBench bench;
    bench.machine.turn = &turn;
    bench.machine.has_plenty = beside.has_plenty;
    bench.machine.is_crowded = [&] { return beside.is_crowded; };
    TaskSource other_task = PuppetTaskSource();
    other_task.key += " of another";
    std::shared_ptr<PooledTask> other;
    if (beside.judges_others) {
      other = bench.pool.Begin(other_task, std::nullopt, false, absl::Now() + absl::Minutes(1)).value();
    }
    bool is_timed = false;
    bench.machine.sealed.timed_calls = [&](int) {
      is_timed = true;
      return CallResult{60};
    };
    const absl::StatusCode code = bench.TryRun().status().code();
    CHECK(code == (has_room ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted));
    CHECK(is_timed == has_room);
    if (other != nullptr) bench.pool.End(std::move(other));
  }
}

TEST_CASE("what a candidate waits for memory that others had is not on its clock, verified or timed") {
  DeviceTurn turn;
  for (DeviceTurn* const shared : {static_cast<DeviceTurn*>(nullptr), &turn}) {
    FakeBench bench;
    bench.machine.turn = shared;
    bench.machine.waits_for_memory = absl::Milliseconds(600);
    bench.request.limits.lane_seconds_max = 0.4;
    const absl::Time begin = absl::Now();
    const v1::Grade grade = bench.Run();
    CHECK(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.cost().lane_wait_seconds() >= 0.6);
    CHECK(bench.machine.timed_since - begin >= absl::Milliseconds(600));
  }
}

TEST_CASE("a hack is no want of memory, and neither is a wrong output of a timed call") {
  CHECK(VerdictOfOneFault({v1::VERDICT_HACK, "out of memory"}, 1) == v1::VERDICT_HACK);
  CHECK(VerdictOfOneFault({v1::VERDICT_INCORRECT, "out of memory"}, 1) == v1::VERDICT_INCORRECT);
}

TEST_CASE("a reference that finds no memory beside a candidate is not at fault") {
  FakeBench bench;
  bench.machine.reference_calls = [](int) {
    return CallResult{0, Fault{v1::VERDICT_RUNTIME_ERROR, "OutOfMemoryError: CUDA out of memory"}};
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_INVALID_TASK);  // it has its own part of the host's
  DeviceTurn turn;
  FakeBench shared;
  shared.machine.turn = &turn;
  shared.machine.reference_calls = bench.machine.reference_calls;
  CHECK(absl::IsResourceExhausted(shared.TryRun().status()));
}

}  // namespace
}  // namespace warpsmith
