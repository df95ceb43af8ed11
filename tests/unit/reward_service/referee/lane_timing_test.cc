#include "reward_service/referee/lane_timing.h"

#include <string>

#include "reward_service/measure/referee.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

constexpr CandidateKind kNative = CandidateKind::kNative;

std::unique_ptr<EmptyCandidate> StartEmpty(Zygote& zygote) {
  auto empty = EmptyCandidate::Start(zygote, CandidateKind::kNative, ShareDirectory(), PuppetLane());
  WS_CHECK(empty.ok()) << empty.status().ToString();
  return *std::move(empty);
}

// Timing of puppets, on a lane that was taken ten seconds ago.
struct Bench {
  explicit Bench(CandidateKind kind, const nlohmann::json& script = nlohmann::json::object(),
                 bool tells_launches = false)
      : puppets(script),
        request(PuppetRequest(kind)),
        jails({.zygote = puppets.zygote.get(),
               .lane = &PuppetLane(),
               .memory_bytes_max = int64_t{1} << 30,
               .room = Room::kOpen,
               .tells_launches = tells_launches,
               .deadline = absl::Now() + absl::Seconds(60)},
              request, AnyProgram().get(), &measurement),
        empty(StartEmpty(*empty_zygote)) {
    const absl::Status status = puppets.task->Complete();
    WS_CHECK(status.ok()) << status.ToString();
    auto fresh = puppets.task->MakeFresh(puppets.task->num_fresh_draws());
    WS_CHECK(fresh.ok()) << fresh.status().ToString();
    puppets.task->Renew(*std::move(fresh));
  }

  LaneTiming Timing(EmptyCandidate* of_candidate, EmptyCandidate* of_reference,
                    const GpuClockReader* clocks = nullptr) {
    const absl::Time lane_since = absl::Now() - absl::Seconds(10);
    return {jails, puppets.task.get(), &PuppetLane(), of_candidate, of_reference, lane_since, clocks};
  }
  LaneTiming Timing() { return Timing(empty.get(), empty.get()); }
  const Draw& draw(size_t index) const { return *puppets.task->timing_draws()[index]; }

  const std::unique_ptr<Zygote> empty_zygote = StartPuppets();
  PuppetTask puppets;
  JudgeRequest request;
  v1::Measurement measurement;
  CandidateJails jails;
  const std::unique_ptr<EmptyCandidate> empty;
};

TEST_CASE(
    "instances are timed beside the reference's processes by turns, each brought back to memory first") {
  Bench bench(kNative);
  LaneTiming timing = bench.Timing();
  for (int instance = 0; instance < 4; ++instance) {
    const auto reference = timing.Reference(instance);
    REQUIRE(reference.ok());
    const CallResult result = (*reference)->Call({&bench.draw(0)}, nullptr);
    CHECK_FALSE(result.fault);
    CHECK(result.us > 0);
  }
  Bench worn(kNative, {{"answers", {{"refresh Model", {nullptr, {{"op", "failed"}, {"error", "worn"}}}}}}});
  LaneTiming beside = worn.Timing();
  for (int instance = 0; instance < 3; ++instance) CHECK(beside.Reference(instance).ok());
  CHECK(beside.Reference(3).status() ==
        absl::InvalidArgumentError("the reference fails when it is timed: worn"));
}

TEST_CASE("a candidate is asked what it launches where its jail can tell it, and a reference never") {
  const auto ask = [](bool tells_launches) {
    Bench bench(kNative, nlohmann::json::object(), tells_launches);
    LaneTiming timing = bench.Timing();
    const auto reference = timing.Reference(0);
    REQUIRE(reference.ok());
    CHECK(absl::IsUnimplemented((*reference)->Launches(bench.draw(0)).status()));
    auto started = timing.StartCandidate();
    REQUIRE(started.ok());
    REQUIRE_FALSE(started->side->Call({&bench.draw(0)}, nullptr).fault);
    return started->side->Launches(bench.draw(0));
  };
  CHECK(absl::IsUnimplemented(ask(false).status()));
  const auto told = ask(true);
  REQUIRE(told.ok());
  CHECK(told->num_launches() == 1);  // as puppets say
}

TEST_CASE("a reference that fails in a call is told with its reason") {
  // Three calls warm it up.
  Bench bench(kNative, {{"answers",
                         {{"run Model", {nullptr, nullptr, nullptr, {{"op", "failed"}, {"error", "no"}}}}}}});
  LaneTiming timing = bench.Timing();
  const CallResult result = (*timing.Reference(0))->Call({&bench.draw(0)}, nullptr);
  REQUIRE(result.fault);
  CHECK(result.fault->reason == "no");
}

TEST_CASE("a candidate's timed calls are compared, its repeated ones with the call behind them") {
  Bench bench(CandidateKind::kKernelBenchPython, {{"output", 5}, {"expected", {{"own", 5}}}});
  LaneTiming timing = bench.Timing();
  REQUIRE(timing.Reference(0).ok());
  auto started = timing.StartCandidate();
  REQUIRE(started.ok());
  REQUIRE_FALSE(started->fault);
  CHECK_FALSE(started->side->Call({&bench.draw(0)}, nullptr).fault);
  const CallResult repeated = started->side->Repeat(bench.draw(0));
  CHECK_FALSE(repeated.fault);
  CHECK(repeated.us > 0);
  CHECK_FALSE(started->side->Call({&bench.draw(1)}, nullptr).fault);
  Draw wrong;
  wrong.inputs =
      std::make_unique<char[]>(static_cast<size_t>(bench.puppets.task->layout().input_buffer_bytes));
  wrong.expected =
      std::make_unique<char[]>(static_cast<size_t>(bench.puppets.task->layout().output_buffer_bytes));
  wrong.tolerances = bench.draw(0).tolerances;
  const CallResult result = started->side->Call({&wrong}, nullptr);
  REQUIRE(result.fault);
  CHECK(result.fault->reason == "4 of 4 elements wrong in a later call; output 0 [0]: 5, expected 0");
}

TEST_CASE("a candidate that does not start is its own fault") {
  Bench bench(kNative, {{"answers", {{"begin native", {{"op", "failed"}, {"error", "no `run`"}}}}}});
  LaneTiming timing = bench.Timing();
  REQUIRE(timing.Reference(0).ok());
  const auto started = timing.StartCandidate();
  REQUIRE(started.ok());
  CHECK(started->fault->reason == "no `run`");
}

TEST_CASE(
    "the first process that is timed is constructed off the candidate's clock, further ones are on it") {
  Bench bench(kNative, {{"loaded", {{"construction_us", 500'000}}}, {"answers", {{"begin native", 300}}}});
  LaneTiming timing = bench.Timing();
  REQUIRE(timing.Reference(0).ok());
  const auto seconds_off_clock = [&] {
    const absl::Time start = absl::Now();
    const double lane_seconds = timing.LaneSeconds();
    REQUIRE(timing.StartCandidate().ok());
    return absl::ToDoubleSeconds(absl::Now() - start) - (timing.LaneSeconds() - lane_seconds);
  };
  CHECK(seconds_off_clock() > 0.25);
  CHECK(seconds_off_clock() < 0.1);
}

TEST_CASE("a candidate's outputs serve the next one") {
  Bench bench(kNative);
  LaneTiming timing = bench.Timing();
  REQUIRE(timing.Reference(0).ok());
  REQUIRE(timing.StartCandidate().ok());  // and end at once
  LaneTask& task = LaneTask::Of(*bench.puppets.task);
  const TaskLayout& layout = bench.puppets.task->layout();
  Buffers used = *task.BorrowBuffers(layout, CandidateKind::kNative, nullptr);
  const TensorMemory* const slot = used.outputs[0].get();
  task.ReturnBuffers(std::move(used));
  REQUIRE(timing.StartCandidate().ok());
  CHECK(task.BorrowBuffers(layout, CandidateKind::kNative, nullptr)->outputs[0].get() == slot);
}

TEST_CASE("what a call costs is measured on both sides, once where they are of one kind") {
  Bench bench(kNative);
  const auto same = bench.Timing().MeasureOverhead();
  REQUIRE(same.ok());
  CHECK(same->reference.us > 0);
  CHECK(same->candidate.us == same->reference.us);
  const auto zygote = StartPuppets({{"answers", {{"run", "end"}}}});
  const auto candidate = StartEmpty(*zygote);
  const auto reference = StartEmpty(*zygote);
  CHECK(absl::IsInternal(bench.Timing(candidate.get(), bench.empty.get()).MeasureOverhead().status()));
  CHECK(absl::IsInternal(bench.Timing(bench.empty.get(), reference.get()).MeasureOverhead().status()));
}

TEST_CASE(
    "the lane's clock runs since the judgement took it, and slowness is told of the least that was seen") {
  Bench bench(kNative);
  LaneTiming timing = bench.Timing();
  CHECK(timing.LaneSeconds() >= 10);
  CHECK(timing.Slowness(100) == Approx(1));
  CHECK(timing.Slowness(250) == Approx(2.5));
}

TEST_CASE("a GPU's clocks are read where something reads them; why nothing does is told; cores have none") {
  Bench bench(kNative);
  CHECK_FALSE(bench.Timing().ReadClocks().value().has_value());
  const GpuClockReader unknown = absl::NotFoundError("there is no NVML");
  CHECK(bench.Timing(bench.empty.get(), bench.empty.get(), &unknown).ReadClocks().status() ==
        unknown.status());
  const FakeGpu gpu;
  const GpuClockReader reader = cuda::ClockReader::Open("GPU-abababab-abab-abab-abab-ababababab00",
                                                        (FakeCudaFolder() / "libnvidia-ml.so.1").string());
  REQUIRE(reader.ok());
  const auto reading = bench.Timing(bench.empty.get(), bench.empty.get(), &reader).ReadClocks();
  REQUIRE((reading.ok() && reading->has_value()));
  CHECK((*reading)->sm_mhz == 990);
}

}  // namespace
}  // namespace warpsmith
