#include "reward_service/referee/candidate_jails.h"

#include <sched.h>

#include <memory>
#include <string>
#include <utility>

#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/held_turn.h"
#include "tests/unit/reward_service/referee/candidate_jails_bench.h"

namespace warpsmith {
namespace {

using Bench = JailsBench;

TEST_CASE(
    "a native candidate gets its library, a Python one its source, its extensions and its constructor") {
  Bench native(CandidateKind::kNative);
  CHECK(Told(*native.Start(nullptr, 3))["begin"]["num_descriptors"] == 4);  // library, inputs, two slots
  Bench python(CandidateKind::kKernelBenchPython, {{"loaded", {{"init_inputs", {{"tuple", {5}}}}}}});
  const nlohmann::json begin = Told(*python.Start(nullptr, 3))["begin"];
  CHECK(begin["num_descriptors"] == 4);  // source, inputs, two extensions
  CHECK(begin["entry"] == "ModelNew");
  CHECK(begin["num_threads"] == 3);
  CHECK(begin["init_inputs"] == nlohmann::json{{"tuple", {5}}});
  CHECK(begin["construction_seed"] == python.puppets.task->construction_seed());
}

TEST_CASE("every start is a process of its own, with CPU time of its own, at least a second") {
  Bench bench(CandidateKind::kNative);
  bench.request.limits.cpu_seconds_max = 0.5;
  const nlohmann::json first = Told(*bench.Start());
  const nlohmann::json second = Told(*bench.Start());
  CHECK(first["number"] != second["number"]);
  CHECK(first["rights"]["cpu_seconds_max"] == 1);
}

TEST_CASE(
    "a candidate has what the reference's constructor takes besides its own seconds, and off its clock") {
  const auto script = [](int construction_us) -> nlohmann::json {
    return {{"loaded", {{"construction_us", construction_us}}}, {"answers", {{"begin native", 300}}}};
  };
  Bench longer(CandidateKind::kNative, script(2'500'000));
  const auto all = longer.Start();
  REQUIRE(all.ok());
  CHECK(all->constructing >= absl::Milliseconds(300));
  CHECK(all->constructing < absl::Milliseconds(2500));
  CHECK(all->jail->jail().limits().cpu_seconds_max == 12);
  CHECK(Told(*all)["rights"]["cpu_seconds_max"] == 12);
  longer.request.limits.lane_seconds_max = 1;
  CHECK(longer.Start()->jail->jail().limits().cpu_seconds_max == 11);
  Bench shorter(CandidateKind::kNative, script(200'000));
  const auto part = shorter.Start();
  REQUIRE(part.ok());
  CHECK(part->constructing == absl::Milliseconds(200));
  CHECK(Told(*part)["rights"]["cpu_seconds_max"] == 10);
}

TEST_CASE("a candidate has memory for the reference's parameters, and shares spares where they are small") {
  // The memory of a candidate whose reference has so many, with 1 MiB of its own.
  const auto memory_beside = [](int num_parameters) {
    const nlohmann::json parameter = {
        {"code", 2}, {"bits", 32}, {"shape", {num_parameters}}, {"name", "weight"}};
    Bench bench(CandidateKind::kKernelBenchPython, {{"loaded", {{"parameters", {parameter}}}}});
    bench.options.memory_bytes_max = 1 << 20;
    bench.Renew();
    const auto started = bench.Start();
    REQUIRE(started.ok());
    return Told(*started)["rights"]["memory_bytes_max"].get<int>();
  };
  CHECK(memory_beside(1000) == 1 << 20);
  CHECK(memory_beside(65000) == 1 << 20);
  CHECK(memory_beside(70000) == (1 << 20) + (256 << 10));
}

TEST_CASE("who waits while others are timed has inputs that nobody else has") {
  Bench bench(CandidateKind::kKernelBenchPython);
  const auto verified = bench.Start();
  const auto first = bench.jails->StartAhead(*bench.puppets.task, 1);
  const auto second = bench.jails->StartAhead(*bench.puppets.task, 1);
  REQUIRE(verified.ok());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->jail->jail().inputs() != verified->jail->jail().inputs());
  CHECK(first->jail->jail().inputs() != second->jail->jail().inputs());
}

TEST_CASE("who is timed beside a baseline shares its inputs") {
  Bench bench(CandidateKind::kNative);
  REQUIRE(bench.puppets.task->Complete().ok());
  const Jail& baseline = *LaneTask::Of(*bench.puppets.task).baselines()[1];
  CHECK(bench.Start(&baseline)->jail->jail().inputs() == baseline.inputs());
  CHECK(bench.Start()->jail->jail().inputs() != baseline.inputs());
  CHECK_FALSE(bench.Start()->jail->jail().has_own_inputs());
}

TEST_CASE("a candidate that does not load is a fault, a jail that does not come one of the machine") {
  const nlohmann::json refuses = {{"answers", {{"begin native", {{"op", "failed"}, {"error", "no `run`"}}}}}};
  Bench refusing(CandidateKind::kNative, refuses);
  const auto refused = refusing.Start();
  REQUIRE(refused.ok());
  CHECK(refused->fault->reason == "no `run`");
  // The oracle has said hello before: it is a script's first child.
  const nlohmann::json mute = {{"answers", {{"hello python", "silent"}}}};
  CHECK(absl::IsDeadlineExceeded(
      Bench(CandidateKind::kNative, mute, Room::kOpen, absl::Now()).Start().status()));
}

TEST_CASE("a process that cannot enter its lane is a failure of the machine, and no fault") {
  Bench bench(CandidateKind::kNative);
  const Lane gone({CPU_SETSIZE - 1}, /*realtime=*/false);
  CandidateJails jails({.zygote = bench.puppets.zygote.get(),
                        .lane = &gone,
                        .memory_bytes_max = int64_t{1} << 30,
                        .room = Room::kOpen,
                        .deadline = Soon()},
                       bench.request, AnyProgram().get(), &bench.measurement);
  CHECK(absl::IsInternal(jails.Start(*bench.puppets.task, nullptr, 1).status()));
}

TEST_CASE("a spare that could not enter its jail is nobody's fault: another process takes its place") {
  const nlohmann::json refused = {
      {"hello python", {{"op", "failed"}, {"error", "cuDevicePrimaryCtxRetain"}}}};
  // The oracle is the first child. With the first candidate come three spares.
  Bench bench(CandidateKind::kNative, {{"children", {{"2", refused}}}});
  CHECK(Told(*bench.Start())["number"] == 1);
  CHECK(Told(*bench.Start())["number"] == 6);
  Bench never(CandidateKind::kNative, {{"children", {{"1", refused}, {"5", refused}}}});
  CHECK(absl::IsInternal(never.Start().status()));
  // So it is with one that the kernel has ended meanwhile.
  Bench killed(CandidateKind::kNative, {{"children", {{"1", {{"hello python", "end"}}}}}});
  CHECK(Told(*killed.Start())["number"] == 5);
}

// A task on a GPU, and jails of a native candidate there.
struct GpuBench {
  explicit GpuBench(const nlohmann::json& script = nlohmann::json::object()) : zygote(StartPuppets(script)) {
    REQUIRE(task.Examine().ok());
  }

  absl::StatusOr<StartedJail> Start() { return jails.Start(task, nullptr, 1); }
  absl::StatusOr<StartedJail> Start(DeviceTurn::Kind kind) {
    const auto turn = HoldTurn(store->turn(), kind);
    return Start();
  }

  FakeGpu gpu;
  const std::unique_ptr<GpuStore> store = *GpuStore::Open(0);
  const std::unique_ptr<Zygote> zygote;
  const RefereeFacts facts;
  PreparedTask task{
      PuppetTaskSource(), 7, PuppetTaskLimits(),
      zygote.get(),       1, LaneTask::Place(zygote.get(), PuppetTaskLimits(), 1, *store, facts)};
  const JudgeRequest request = PuppetRequest(CandidateKind::kNative);
  v1::Measurement measurement;
  CandidateJails jails{{.zygote = zygote.get(),
                        .lane = &PuppetLane(),
                        .memory_bytes_max = int64_t{1} << 30,
                        .deadline = Soon()},
                       request,
                       AnyProgram().get(),
                       &measurement};
};

TEST_CASE("on a GPU no process is made ready beside one that is alone there") {
  GpuBench bench;
  // Forks that there were once a candidate has started in such a turn.
  const auto num_forks = [&](DeviceTurn::Kind kind) {
    const auto verified = bench.Start(kind);
    REQUIRE(verified.ok());
    CHECK(verified->jail->jail().has_own_inputs());  // for it may be timed
    CHECK(verified->waited == absl::ZeroDuration());
    auto next = bench.zygote->Fork({.role = zygote::Fork::kPython, .memory_bytes_max = int64_t{1} << 30});
    REQUIRE((next.ok() && (*next)->AwaitHello(Soon()).ok()));
    return (*next)->Ask({{"op", "tell"}}, {}, Soon())->fields["number"].get<int>();
  };
  const int first = num_forks(DeviceTurn::Kind::kShared);
  for (int i = 1; i <= 4; ++i) CHECK(num_forks(DeviceTurn::Kind::kAlone) == first + i);  // this asks for one
  CHECK(num_forks(DeviceTurn::Kind::kAlone) == first + 6);  // there was no spare any more
  CHECK(num_forks(DeviceTurn::Kind::kShared) == first + 12);
}

TEST_CASE(
    "a candidate that is alone on a GPU has the memory of those who wait there, and does not pay for it") {
  const nlohmann::json refused = {
      {"hello python", {{"op", "failed"}, {"error", "CUDA_ERROR_OUT_OF_MEMORY"}}}};
  // The oracle is the first child; the next three find no memory.
  const nlohmann::json script = {{"children", {{"1", refused}, {"2", refused}, {"3", refused}}}};
  GpuBench bench(script);
  int num_ended = 0;
  bench.store->set_end_waiting([&] { return ++num_ended > 0; });
  const absl::Time begin = absl::Now();
  const auto started = bench.Start(DeviceTurn::Kind::kAlone);
  REQUIRE(started.ok());
  CHECK(num_ended == 1);
  CHECK(Told(*started)["number"] == 4);
  CHECK(started->waited > absl::Milliseconds(100));
  CHECK(started->waited < absl::Now() - begin);
}

TEST_CASE(
    "beside others on a GPU a candidate is loaded in what the reference's constructor takes and some "
    "seconds") {
  const int begin_ms = static_cast<int>(1000 * kBesideOthersSecondsMax) + 200;
  for (const int construction_us : {0, 2'000'000}) {
    GpuBench bench({{"loaded", {{"construction_us", construction_us}}}, {"answers", {{"begin", begin_ms}}}});
    const auto started = bench.Start(DeviceTurn::Kind::kShared);
    REQUIRE(started.ok());
    CHECK(started->fault.has_value() == (construction_us == 0));
  }
}

TEST_CASE("a candidate may have lacked memory where that was scarce at some time since its start") {
  GpuBench bench;
  const auto started = bench.Start(DeviceTurn::Kind::kShared);
  REQUIRE(started.ok());
  CHECK_FALSE(started->jail->MayHaveLackedMemory());
  bench.gpu.Say("free 20\n");
  bench.store->LookAtMemory();
  bench.gpu.Say("");
  CHECK(started->jail->MayHaveLackedMemory());
  CHECK_FALSE(bench.Start(DeviceTurn::Kind::kShared)->jail->MayHaveLackedMemory());
}

TEST_CASE("a GPU that fails in a candidate's turn is known to be broken, whatever is said of the candidate") {
  GpuBench bench;
  const auto started = bench.Start();
  REQUIRE(started.ok());
  REQUIRE(bench.store->Failure().ok());
  bench.gpu.Say("fail cuCtxSynchronize 719\n");
  started->jail->jail().Load(Batch());
  bench.gpu.Say("");
  CHECK(started->jail->jail().Run());
  CHECK(absl::IsInternal(bench.store->Failure()));
}

std::unique_ptr<CheckedJail> StartAhead(Bench* bench) {
  absl::StatusOr<StartedJail> started = bench->jails->StartAhead(*bench->puppets.task, 1);
  REQUIRE(started.ok());
  REQUIRE_FALSE(started->fault);
  return std::move(started->jail);
}

TEST_CASE("a process that is kept to be timed is given once, the last one first") {
  Bench bench(CandidateKind::kNative);
  AllKeptJails all;
  KeptJails kept(&all);
  CHECK(kept.empty());
  CHECK(kept.TakeWarm() == nullptr);
  kept.AddWarm(StartAhead(&bench));
  std::unique_ptr<CheckedJail> last = StartAhead(&bench);
  CheckedJail* const expected = last.get();
  kept.AddWarm(std::move(last));
  CHECK(kept.TakeWarm().get() == expected);
  CHECK_FALSE(kept.empty());
  CHECK(kept.End(Soon()).ok());
  CHECK(kept.empty());
}

TEST_CASE("a process that was verified is given behind others, and never first") {
  Bench bench(CandidateKind::kNative);
  AllKeptJails all;
  KeptJails kept(&all);
  kept.AddVerified(StartAhead(&bench));
  CHECK(kept.num_warm() == 1);
  CHECK(kept.TakeWarm() == nullptr);
  CHECK(kept.TakeWarm() != nullptr);
  CHECK(kept.empty());
  kept.AddVerified(StartAhead(&bench));
  CHECK(kept.End(Soon()).ok());
  CHECK(kept.empty());
  kept.AddVerified(StartAhead(&bench));
  CHECK(kept.TakeWarm() == nullptr);  // as at the beginning
  CHECK(all.Kill());
  CHECK(kept.TakeWarm() == nullptr);
}

TEST_CASE("processes that are killed are not timed any more, and end as others do") {
  Bench bench(CandidateKind::kNative);
  AllKeptJails all;
  KeptJails kept(&all), others(&all);
  kept.AddWarm(StartAhead(&bench));
  others.AddEnded(StartAhead(&bench));
  CHECK(all.Kill());
  CHECK(kept.TakeWarm() == nullptr);
  CHECK_FALSE(kept.empty());
  CHECK(kept.End(Soon()).ok());
  CHECK(others.End(Soon()).ok());
  CHECK(kept.empty());
  CHECK(others.empty());
}

TEST_CASE("processes that were killed before are not there to be killed again") {
  Bench bench(CandidateKind::kNative);
  AllKeptJails all;
  KeptJails kept(&all);
  kept.AddWarm(StartAhead(&bench));
  CHECK(all.Kill());
  CHECK_FALSE(all.Kill());
  kept.AddEnded(StartAhead(&bench));
  CHECK(all.Kill());
  CHECK(kept.End(Soon()).ok());
  CHECK_FALSE(all.Kill());
  kept.AddWarm(StartAhead(&bench));
  CHECK(all.Kill());
  CHECK(kept.End(Soon()).ok());
}

TEST_CASE("who keeps nothing any more is not asked") {
  AllKeptJails all;
  { KeptJails kept(&all); }
  CHECK_FALSE(all.Kill());
}

}  // namespace
}  // namespace warpsmith
