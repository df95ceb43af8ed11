#include "reward_service/referee/gpu_device.h"

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

// With these the puppets have one output of 16 bytes.
struct Bench {
  explicit Bench(CandidateKind kind = CandidateKind::kNative)
      : puppets(nlohmann::json::object()), request(PuppetRequest(kind)) {
    store = *GpuStore::Open(0);
    tools = {.lane = &PuppetLane()};
    tools.facts.empty_call_us = 50;
    tools.facts.gigabytes_per_second_ceiling = 2;
    auto opened =
        GpuDevice::Open(tools, store.get(), {request, absl::Now() + absl::Seconds(60), &measurement});
    REQUIRE(opened.ok());
    device = *std::move(opened);
  }

  FakeGpu gpu;
  PuppetTask puppets;
  JudgeRequest request;
  LaneTools tools;
  std::unique_ptr<GpuStore> store;
  v1::Measurement measurement;
  std::unique_ptr<JudgingDevice> device;
};

TEST_CASE("on a GPU nothing is sampled or repeated, and no call is shorter than its cache takes outputs") {
  Bench bench;
  const TimerOptions options = bench.device->TimingOptions(bench.puppets.task->layout());
  CHECK_FALSE(options.can_sample);
  CHECK_FALSE(options.repeats);
  CHECK(options.num_warm_ups == kWarmUpDraws);
  CHECK(options.least_us == Approx(16 / (4 * 2e3)));
  CHECK(options.batch_calls_max == 16);
  TaskLayout large = bench.puppets.task->layout();
  large.input_buffer_bytes = 600 << 20;
  CHECK(bench.device->TimingOptions(large).batch_calls_max == 1);
  CHECK(options.long_call_us == Approx(50 * kLongCallFactor));
}

TEST_CASE("on a GPU few processes are timed, and never more than are asked for") {
  const Bench bench;
  TimingEffort effort;
  effort.num_instances_min = 5;
  CHECK(bench.device->EffortOf(effort).num_instances_min == 2);
  CHECK(bench.device->EffortOf(effort).num_instances_max == effort.num_instances_max);
  effort.num_instances_min = 1;
  CHECK(bench.device->EffortOf(effort).num_instances_min == 1);
}

TEST_CASE(
    "on a GPU what is between a Python program's calls is on its clock; after an error it is judged again") {
  Bench native;
  Bench python(CandidateKind::kKernelBenchPython);
  const TaskLayout& layout = native.puppets.task->layout();
  CHECK(native.device->TimingOptions(layout).path.takes_between_off);
  CHECK_FALSE(python.device->TimingOptions(layout).path.takes_between_off);
  CHECK_FALSE(python.device->TimingOptions(layout).path.may_be_cut_short);
  CHECK(python.device->TimingOptions(layout).own_output_bytes == 16);
  CHECK(python.device->TimingOptions(layout).clear_us == Approx(16 / 2e3));
  CHECK(native.device->TimingOptions(layout).own_output_bytes == 0);
  CHECK(python.device->TimingOptions(layout).batch_calls_max == 16);
  TaskLayout with_parameters = layout;
  with_parameters.parameters = layout.inputs;
  with_parameters.parameters[0].offset = layout.input_buffer_bytes - 4;
  with_parameters.reference_us = 50;
  CHECK(python.device->TimingOptions(with_parameters).batch_calls_max == 16);
  CHECK(native.device->TimingOptions(with_parameters).batch_calls_max == 1);
  // Three microseconds of a copy are little of these.
  with_parameters.reference_us = 300;
  const size_t of_python = python.device->TimingOptions(with_parameters).batch_calls_max;
  CHECK(of_python > 1);
  CHECK(native.device->TimingOptions(with_parameters).batch_calls_max == of_python);
  with_parameters.parameters.resize(4, with_parameters.parameters[0]);
  CHECK(native.device->TimingOptions(with_parameters).batch_calls_max == 1);
  CHECK_FALSE(native.device->JudgesErrorsAgain());
  CHECK(python.device->JudgesErrorsAgain());
}

using Rooms = std::vector<Room>;

std::vector<Room> RoomsOf(Bench* bench, double product_share) {
  TaskLayout layout = bench->puppets.task->layout();
  layout.product_share = product_share;
  return bench->device->Rooms(layout);
}

TEST_CASE("on a GPU kernels are emptied before a program has all libraries, unless its task allows them") {
  Bench native;
  CHECK(RoomsOf(&native, 0.4) == Rooms{Room::kSealed, Room::kEmptied, Room::kOpen});
  native.request.with_blas = true;
  CHECK(RoomsOf(&native, 0.4) == Rooms{Room::kSealed, Room::kEmptied, Room::kOpen});
  Bench python(CandidateKind::kKernelBenchPython);
  python.request.extension_fds = {0};
  CHECK(RoomsOf(&python, 0.4) == Rooms{Room::kSealed, Room::kProducts, Room::kEmptied, Room::kOpen});
  CHECK(RoomsOf(&python, 1) == Rooms{Room::kSealed, Room::kEmptied, Room::kOpen});
  python.request.with_blas = true;
  CHECK(RoomsOf(&python, 0.4) == Rooms{Room::kProducts, Room::kEmptied, Room::kOpen});
  python.request.with_torch = true;
  CHECK(RoomsOf(&python, 0.4) == Rooms{Room::kOpen});
}

TEST_CASE("on a GPU a Python program that can have no kernels is not judged without libraries, nor timed") {
  Bench bench(CandidateKind::kKernelBenchPython);
  bench.request.source =
      "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n";
  for (const double product_share : {0.0, 0.4, 1.0})
    CHECK(RoomsOf(&bench, product_share) == Rooms{Room::kEmptied});
  bench.request.with_blas = true;
  CHECK(RoomsOf(&bench, 0.4) == Rooms{Room::kProducts, Room::kEmptied});
  bench.request.with_blas = false;
  for (const char* way :
       {"load_inline(name)", "import ctypes", "import triton"}) {  // which were not recorded
    Bench other(CandidateKind::kKernelBenchPython);
    other.request.source = way;
    CHECK(RoomsOf(&other, 0) == Rooms{Room::kSealed, Room::kOpen});
  }
}

TEST_CASE("what bounds a program on a GPU is told by its memory") {
  Bench bench;
  const TaskLayout& layout = bench.puppets.task->layout();
  const auto bound = [&](double us) {
    v1::Timing timing;
    timing.mutable_candidate()->set_median_us(us);
    timing.set_empty_call_us(1e-3);
    timing.set_calls_per_batch(2);
    v1::Profile profile;
    bench.device->Describe(layout, &timing, &profile);
    CHECK(profile.gigabytes_per_second_ceiling() == 2);
    return profile.bound();
  };
  const double us_at_ceiling = static_cast<double>(layout.tensor_bytes()) / 2e3;
  CHECK(bound(us_at_ceiling) == "memory");
  CHECK(bound(10 * us_at_ceiling) == "compute");
  CHECK(bound(4e-4) == "latency");
  CHECK(bound(6e-4) == "memory");
}

TEST_CASE(
    "want of memory or time may be others' doing on a GPU; wrong outputs are a program's own while there was "
    "memory") {
  Bench bench;
  const auto may_be = [&](v1::Verdict verdict, const char* reason) {
    return bench.device->MayBeOthersDoing({verdict, reason}, absl::Now());
  };
  CHECK(may_be(v1::VERDICT_TIMEOUT, "no result after 2 s"));
  CHECK(may_be(v1::VERDICT_RUNTIME_ERROR, "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"));
  CHECK(may_be(v1::VERDICT_RUNTIME_ERROR, "run() returned 2"));   // cudaErrorMemoryAllocation
  CHECK(may_be(v1::VERDICT_RUNTIME_ERROR, "run() returned 46"));  // cudaErrorDevicesUnavailable
  CHECK_FALSE(may_be(v1::VERDICT_RUNTIME_ERROR, "run() returned 700"));
  CHECK_FALSE(may_be(v1::VERDICT_RUNTIME_ERROR, "an illegal memory access was encountered"));
  CHECK_FALSE(may_be(v1::VERDICT_INCORRECT, "4 of 4 elements wrong"));
  CHECK_FALSE(bench.device->MayBeOthersDoing(
      {.verdict = v1::VERDICT_RUNTIME_ERROR, .reason = "used a withheld library", .withheld = true},
      absl::Now()));
  // The kernel ends those with it that have most of the host's memory, whoever asked for more.
  CHECK(bench.device->MayBeOthersDoing(
      {.verdict = v1::VERDICT_RUNTIME_ERROR, .reason = "was ended", .killed = true}, absl::Now()));
}

TEST_CASE("a fault of a time in which memory was scarce may be others' doing, though it is not any more") {
  Bench bench;
  const Fault wrong{v1::VERDICT_INCORRECT, "4 of 4 elements wrong"};
  // In a sealed room Torch may tell that it lacks memory by code that is withheld.
  const Fault withheld{.verdict = v1::VERDICT_RUNTIME_ERROR, .reason = "used a library", .withheld = true};
  const absl::Time before = absl::Now();
  SECTION("somebody saw it") {
    bench.gpu.Say("free 20\n");  // percent
    bench.store->LookAtMemory();
    bench.gpu.Say("");
  }
  SECTION("somebody else has said so, and it is so") {
    bench.gpu.Say("free 20\n");
    CHECK(bench.device->MayBeOthersDoing({v1::VERDICT_RUNTIME_ERROR, "CUDA out of memory"}, before));
    bench.gpu.Say("");
  }
  SECTION("what is left was not known") {
    bench.gpu.Say("fail cuMemGetInfo_v2 1\n");
    bench.store->LookAtMemory();
    bench.gpu.Say("");
  }
  CHECK(bench.device->MayBeOthersDoing(wrong, before));
  CHECK(bench.device->MayBeOthersDoing(withheld, before));
  CHECK_FALSE(bench.device->MayBeOthersDoing(wrong, absl::Now()));
}

TEST_CASE("who says that memory is wanting while there is plenty excuses nobody else") {
  Bench bench;
  const absl::Time before = absl::Now();
  CHECK(bench.device->MayBeOthersDoing({v1::VERDICT_RUNTIME_ERROR, "CUDA out of memory"}, before));
  CHECK_FALSE(bench.device->MayBeOthersDoing({v1::VERDICT_INCORRECT, "4 of 4 elements wrong"}, before));
}

TEST_CASE("a GPU that fails is told, so that its lane ends") {
  Bench bench;
  CHECK(bench.device->CheckHealth().ok());
  bench.gpu.Say("fail cuLaunchKernel 719\n");
  CHECK(absl::IsInternal(bench.device->CheckHealth()));
}

}  // namespace
}  // namespace warpsmith
