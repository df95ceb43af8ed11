#include "reward_service/referee/cpu_device.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

constexpr CandidateKind kNative = CandidateKind::kNative;
constexpr CandidateKind kPython = CandidateKind::kKernelBenchPython;

struct Bench {
  explicit Bench(CandidateKind kind, const nlohmann::json& script = nlohmann::json::object())
      : puppets(script), request(PuppetRequest(kind)) {
    tools = {.lane = &PuppetLane(),
             .native_zygote = puppets.zygote.get(),
             .python_zygote = puppets.zygote.get(),
             .jail_memory_bytes_max = int64_t{1} << 30};
    tools.facts.profile = true;
    tools.facts.empty_call_us = 50;
    tools.facts.sample_us = 15;
    tools.facts.gigabytes_per_second_ceiling = 2;
    tools.facts.nearest_cache_gigabytes_per_second = 100;
    auto opened = CpuDevice::Open(tools, {request, absl::Now() + absl::Seconds(60), &measurement});
    REQUIRE(opened.ok());
    device = *std::move(opened);
  }

  StartedProgram Start(Room room = Room::kOpen) {
    auto started = device->StartCandidate(*puppets.task, room);
    REQUIRE(started.ok());
    REQUIRE(started->program != nullptr);
    return *std::move(started);
  }
  const Draw& draw(size_t index) const { return *puppets.task->verification_draws()[index]; }
  const TaskLayout& layout() const { return puppets.task->layout(); }

  PuppetTask puppets;
  JudgeRequest request;
  LaneTools tools;
  v1::Measurement measurement;
  std::unique_ptr<JudgingDevice> device;
};

// With these the puppets have one output of 16 bytes.
v1::Timing Took(double us) {
  v1::Timing timing;
  timing.mutable_candidate()->set_median_us(us);
  timing.set_empty_call_us(1);
  return timing;
}

TEST_CASE("a judgement on cores says on how many, and cores stay healthy") {
  Bench bench(kNative);
  CHECK(bench.measurement.advice_facts().num_lane_cores() == 1);
  CHECK(bench.device->CheckHealth().ok());
}

std::vector<Room> RoomsOf(
    CandidateKind kind, double product_share,
    const std::function<void(JudgeRequest*)>& change = [](JudgeRequest*) {}) {
  Bench bench(kind, {{"loaded", {{"product_share", product_share}}}});
  change(&bench.request);
  const auto device =
      CpuDevice::Open(bench.tools, {bench.request, absl::Now() + absl::Seconds(60), &bench.measurement});
  REQUIRE(device.ok());
  return (*device)->Rooms(bench.layout());
}

using Rooms = std::vector<Room>;

TEST_CASE("a native program is judged without libraries first, and then with all, whatever its task allows") {
  CHECK(RoomsOf(kNative, 0.4) == Rooms{Room::kSealed, Room::kOpen});
  CHECK(RoomsOf(kNative, 0.4, [](JudgeRequest* request) { request->with_blas = true; }) ==
        Rooms{Room::kSealed, Room::kOpen});
}

TEST_CASE(
    "a Python program has a room with products where a part of the reference is such, and no less or more") {
  CHECK(RoomsOf(kPython, 0.4) == Rooms{Room::kSealed, Room::kProducts, Room::kEmptied});
  CHECK(RoomsOf(kPython, 0) == Rooms{Room::kSealed, Room::kEmptied});
  CHECK(RoomsOf(kPython, 1) == Rooms{Room::kSealed, Room::kEmptied});
}

TEST_CASE("a Python program with extensions has code of its own, and ends in the open room") {
  const auto with_extension = [](JudgeRequest* request) { request->extension_fds = {AnyProgram().get()}; };
  CHECK(RoomsOf(kPython, 0.4, with_extension) == Rooms{Room::kSealed, Room::kProducts, Room::kOpen});
  CHECK(RoomsOf(kPython, 0, with_extension) == Rooms{Room::kSealed, Room::kOpen});
}

TEST_CASE("a Python program begins where the libraries run that its task allows") {
  const auto with_blas = [](JudgeRequest* request) { request->with_blas = true; };
  for (const double product_share : {0.0, 0.4, 1.0}) {
    CHECK(RoomsOf(kPython, product_share, with_blas) == Rooms{Room::kProducts, Room::kEmptied});
    CHECK(RoomsOf(kPython, product_share, [](JudgeRequest* request) { request->with_torch = true; }) ==
          Rooms{Room::kOpen});
  }
  CHECK(RoomsOf(kPython, 0.4, [&](JudgeRequest* request) {
          with_blas(request);
          request->extension_fds = {AnyProgram().get()};
        }) == Rooms{Room::kProducts, Room::kOpen});
}

void StartIn(Room room, bool with_blas, Bench* bench) {
  bench->request.with_blas = with_blas;
  const auto device =
      CpuDevice::Open(bench->tools, {bench->request, absl::Now() + absl::Seconds(60), &bench->measurement});
  REQUIRE(device.ok());
  REQUIRE((*device)->StartCandidate(*bench->puppets.task, room).ok());
}

TEST_CASE("the zygotes with BLAS and with products are started for the programs that run there alone") {
  for (const CandidateKind kind : {kNative, kPython}) {
    Bench bench(kind);
    LateZygote blas([] { return absl::StatusOr<std::unique_ptr<Zygote>>(StartPuppets()); });
    LateZygote products([] { return absl::StatusOr<std::unique_ptr<Zygote>>(StartPuppets()); });
    bench.tools.native_zygote_with_blas = &blas;
    bench.tools.python_zygote_with_products = &products;
    for (const Room room : {Room::kSealed, Room::kEmptied, Room::kOpen}) StartIn(room, false, &bench);
    CHECK(blas.started() == nullptr);
    CHECK(products.started() == nullptr);
    StartIn(kind == kNative ? Room::kSealed : Room::kProducts, true, &bench);
    CHECK((blas.started() != nullptr) == (kind == kNative));
    CHECK((products.started() != nullptr) == (kind == kPython));
  }
}

TEST_CASE("a zygote or a library that cannot be had is a failure of the machine, and no fault") {
  Bench python(kPython);
  LateZygote broken(
      []() -> absl::StatusOr<std::unique_ptr<Zygote>> { return absl::UnavailableError("no Torch"); });
  python.tools.python_zygote_with_products = &broken;
  CHECK(python.device->StartCandidate(*python.puppets.task, Room::kProducts).status() ==
        absl::UnavailableError("no Torch"));
  python.device->AwaitSpare(*python.puppets.task, Room::kProducts);  // tells nothing
  Bench native(kNative);
  native.request.library_fd = -1;
  const auto device =
      CpuDevice::Open(native.tools, {native.request, absl::Now() + absl::Seconds(60), &native.measurement});
  CHECK_FALSE((*device)->StartCandidate(*native.puppets.task, Room::kEmptied).ok());
}

TEST_CASE("a candidate of either kind is verified in a jail of its own") {
  for (const CandidateKind kind : {kNative, kPython}) {
    Bench bench(kind);
    StartedProgram started = bench.Start();
    REQUIRE_FALSE(started.fault);
    CHECK_FALSE(started.program->Call(bench.draw(0), Comparing::kNumbers));
    CHECK_FALSE(started.program->Call(bench.draw(1), Comparing::kNumbers));
    CHECK(started.program->us() > 0);
    CHECK(bench.draw(0).shown);
    CHECK(bench.measurement.grade().correctness().num_draws() == 2);
    CHECK(started.program->takes_parameters());
  }
}

TEST_CASE("a Python candidate may refuse parameters, a native one is handed them with every call") {
  const nlohmann::json refuses = {{"op", "ready"}, {"parameters_loaded", false}};
  const nlohmann::json script = {{"answers", {{"begin ModelNew", refuses}, {"begin native", refuses}}}};
  CHECK_FALSE(Bench(kPython, script).Start().program->takes_parameters());
  CHECK(Bench(kNative, script).Start().program->takes_parameters());
}

TEST_CASE("a candidate has threads to spread where it has more than one") {
  CHECK(*Bench(kNative, {{"has_thread", true}}).Start().program->SpreadThreads());
  CHECK_FALSE(*Bench(kNative).Start().program->SpreadThreads());
}

TEST_CASE("a candidate that does not load is a fault") {
  Bench bench(kNative, {{"answers", {{"begin native", {{"op", "failed"}, {"error", "no `run`"}}}}}});
  StartedProgram started = bench.Start();
  REQUIRE(started.fault);
  CHECK(started.fault->reason == "no `run`");
}

TEST_CASE("a process that has used its seconds beside others is not kept to be timed") {
  AllKeptJails all;
  const auto is_kept = [&](double cpu_seconds_max, int64_t construction_us) {
    Bench bench(kNative, {{"loaded", {{"construction_us", construction_us}}}});
    bench.tools.kept = &all;
    bench.request.limits.cpu_seconds_max = cpu_seconds_max;
    const auto device =
        CpuDevice::Open(bench.tools, {bench.request, absl::Now() + absl::Seconds(60), &bench.measurement});
    REQUIRE(device.ok());
    const Draw* const draw = &bench.draw(0);
    CHECK_FALSE((*device)->PrepareCandidates(*bench.puppets.task, Room::kOpen, {&draw, 1}, 1));
    const bool has_kept = (*device)->has_kept_candidates();
    CHECK((*device)->EndCandidates().ok());
    return has_kept;
  };
  CHECK(is_kept(10, 0));
  CHECK_FALSE(is_kept(0, 0));
  CHECK(is_kept(0, 60'000'000));  // as long as the reference's constructor takes it may
}

TEST_CASE("the outputs of a candidate that was verified serve the next one") {
  Bench bench(kNative);
  LaneTask& task = LaneTask::Of(*bench.puppets.task);
  bench.Start();  // and end
  Buffers used = *task.BorrowBuffers(bench.layout(), kNative, nullptr);
  const TensorMemory* const slot = used.outputs[0].get();
  task.ReturnBuffers(std::move(used));
  bench.Start();
  CHECK(task.BorrowBuffers(bench.layout(), kNative, nullptr)->outputs[0].get() == slot);
}

TEST_CASE("a Python candidate's calls are repeated, warmed twice, and charged for outputs of its own") {
  const TimerOptions python = [&] {
    Bench bench(kPython);
    return bench.device->TimingOptions(bench.layout());
  }();
  CHECK(python.repeats);
  CHECK(python.num_warm_ups == 2);
  CHECK(python.own_output_bytes == 16);
  CHECK(python.clear_us == Approx(16 / 2e3));
  Bench bench(kNative);
  const TimerOptions native = bench.device->TimingOptions(bench.layout());
  CHECK_FALSE(native.repeats);
  CHECK(native.num_warm_ups == 1);
  CHECK(native.own_output_bytes == 0);
}

TEST_CASE("what the host was measured to do bounds calls, and some are sampled") {
  Bench bench(kNative);
  const TimerOptions options = bench.device->TimingOptions(bench.layout());
  CHECK(options.long_call_us == 5000);
  CHECK(options.sample_period_us == 60);
  CHECK(options.least_us == Approx(16 / 200e3));
  CHECK(options.can_sample);
  bench.tools.facts.nearest_cache_gigabytes_per_second = 0;
  CHECK(bench.device->TimingOptions(bench.layout()).least_us == 0);
}

// 32 bytes in and out at 2 GB/s take 0.016 us.
TEST_CASE("work is bound by latency, memory or arithmetic") {
  Bench bench(kNative);
  const auto bound = [&](double us, double empty_call_us) {
    v1::Timing timing = Took(us);
    timing.set_empty_call_us(empty_call_us);
    timing.set_calls_per_batch(1);
    v1::Profile profile;
    bench.device->Describe(bench.layout(), &timing, &profile);
    CHECK(profile.gigabytes_per_second_ceiling() == 2);
    CHECK(profile.gigabytes_per_second() == Approx(32 / (us * 1e3)));
    return profile.bound();
  };
  CHECK(bound(0.02, 0.01) == "memory");
  CHECK(bound(0.5, 0.01) == "compute");
  CHECK(bound(0.5, 1) == "latency");
}

TEST_CASE("the lane's quality goes before the timer's, and a Python program could cut its path short") {
  for (const CandidateKind kind : {kNative, kPython}) {
    Bench bench(kind);
    v1::Timing timing = Took(0.5);
    timing.set_quality("; slow");
    v1::Profile profile;
    bench.device->Describe(bench.layout(), &timing, &profile);
    CHECK(timing.quality() == PuppetLane().quality() + "; slow");
    CHECK(bench.device->TimingOptions(bench.layout()).path.may_be_cut_short == (kind == kPython));
  }
}

}  // namespace
}  // namespace warpsmith
