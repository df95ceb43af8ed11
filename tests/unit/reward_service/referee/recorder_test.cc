#include "reward_service/referee/recorder.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/base/memory_file.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/held_turn.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

const nlohmann::json kRaises = {{"op", "failed"}, {"error", "no GPU"}};

// Who is timed on the GPU.
std::unique_ptr<DeviceTurn::Held> Alone(TensorStore& store) {
  return HoldTurn(store.turn(), DeviceTurn::Kind::kAlone);
}

// Programs are puppets, recorded where tensors lie in `store`.
struct Bench {
  explicit Bench(TensorStore& store, const nlohmann::json& script = nlohmann::json::object(),
                 std::optional<cuda::GpuFacts> gpu = std::nullopt)
      : zygote(StartPuppets(script)),
        pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PlacesOf(&machine), 2),
        recorder({.jail_memory_bytes_max = int64_t{1} << 30, .gpu = std::move(gpu)}, &pool, zygote.get(),
                 &store) {}

  absl::StatusOr<std::string> Record(absl::Time deadline = Soon(),
                                     const std::string& program = "class ModelNew: 0") {
    const UniqueFd source = *SealedMemoryFile(program);
    const auto recorded = recorder.Record(PuppetTaskSource(), source.get(), deadline);
    if (!recorded.ok()) return recorded.status();
    own_kernels = recorded->own_kernels;
    return ReadMemoryFile(recorded->list.get(), 1 << 20);
  }

  const std::unique_ptr<Zygote> zygote;
  FakeMachine machine;  // on which no process of a reference starts
  TaskPool pool;
  Recorder recorder;
  bool own_kernels = false;  // of the last one
};

TEST_CASE("on a CPU a program is called once where it asks for nothing, and that is all") {
  Bench bench(HostStore(), {{"answers", {{"record on host", kRaises}}}});
  CHECK(*bench.Record() == "[]");
}

TEST_CASE("on a GPU a program that asks without one never has it, and is not called") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  Bench bench(*store,
              {{"records", {{{"name", "a"}}}},
               {"complete", true},
               {"answers", {{"record on host, called", kRaises}, {"record on gpu, called", kRaises}}}});
  const auto others = Alone(*store);
  CHECK(*bench.Record() == R"([{"name":"a"}])");
}

TEST_CASE("a program that records without the GPU is told of it, and one that has it is not") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const nlohmann::json script = {
      {"records", {{{"name", "a"}}}}, {"records on gpu", {{{"name", "b"}}}}, {"complete of", "Fake GPU 0"}};
  Bench untold(*store, script);
  CHECK(*untold.Record() == R"([{"name":"b"}])");
  Bench told(*store, script, cuda::ListGpus()->front());
  const auto others = Alone(*store);
  CHECK(*told.Record() == R"([{"name":"a"}])");
}

TEST_CASE("on a GPU a list that may lack something has it recorded again there") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  Bench bench(*store,
              {{"records", {{{"name", "a"}}}}, {"records on gpu", {{{"name", "a"}}, {{"name", "b"}}}}});
  CHECK(*bench.Record() == R"([{"name":"a"},{"name":"b"}])");
}

TEST_CASE("who comes too late to the GPU's turn does not run there") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  Bench bench(*store, {{"answers", {{"record on gpu, called", kRaises}}}});
  auto others = Alone(*store);
  absl::Status status;
  std::thread recording([&] { status = bench.Record(absl::Now() + absl::Seconds(2)).status(); });
  absl::SleepFor(absl::Seconds(3));
  others.reset();
  recording.join();
  CHECK(absl::IsDeadlineExceeded(status));
}

TEST_CASE("on a GPU a program that asks for nothing without one, or fails, has it in its turn") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  for (const nlohmann::json& without : {nlohmann::json(), kRaises, nlohmann::json("end")}) {
    Bench bench(*store, {{"records on gpu", {{{"name", "b"}}}}, {"answers", {{"record on host", without}}}});
    auto others = Alone(*store);
    absl::Notification done;
    absl::StatusOr<std::string> list;
    std::thread recording([&] {
      list = bench.Record();
      done.Notify();
    });
    CHECK_FALSE(done.WaitForNotificationWithTimeout(absl::Milliseconds(300)));
    others.reset();
    recording.join();
    CHECK(*list == R"([{"name":"b"}])");
  }
}

TEST_CASE("on a GPU a program runs beside others, and one that fails there is alone once more") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const nlohmann::json list = {{"records on gpu", {{{"name", "b"}}}}};
  Bench bench(*store, list);
  auto other = HoldTurn(store->turn(), DeviceTurn::Kind::kShared);
  CHECK(*bench.Record() == R"([{"name":"b"}])");
  // The oracle is the first child; programs without the GPU, beside others and alone are the next.
  nlohmann::json script = list;
  script["children"]["2"] = {{"record on gpu, called", kRaises}};
  Bench unlucky(*store, script);
  absl::Notification done;
  absl::StatusOr<std::string> recorded;
  std::thread recording([&] {
    recorded = unlucky.Record();
    done.Notify();
  });
  CHECK_FALSE(done.WaitForNotificationWithTimeout(absl::Milliseconds(300)));
  other.reset();
  recording.join();
  CHECK(*recorded == R"([{"name":"b"}])");
  Bench wrong(*store, {{"answers", {{"record", kRaises}}}});
  CHECK(absl::IsInvalidArgument(wrong.Record().status()));
}

TEST_CASE("a program that lacks memory when it is recorded has what those have who wait on the GPU") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  for (const char* error : {"OutOfMemoryError: CUDA out of memory", "NameError"}) {
    int num_asked = 0;
    store->set_end_waiting([&] { return ++num_asked > 0; });
    nlohmann::json script = {{"records on gpu", {{{"name", "b"}}}}};
    // The oracle is the first child; programs without the GPU, beside others and alone are the next.
    script["children"]["2"] = {{"record on gpu, called", {{"op", "failed"}, {"error", error}}}};
    Bench bench(*store, script);
    CHECK(*bench.Record() == R"([{"name":"b"}])");
    CHECK(num_asked == (SaysWantOfMemory(error) ? 1 : 0));
  }
}

TEST_CASE("a program that wants torch.compile is told so without the GPU") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const nlohmann::json refused = {{"op", "failed"},
                                  {"error", "RuntimeError: torch.compile is of no use here: ..."}};
  Bench bench(*store, {{"answers", {{"record on host", refused}}}});
  const auto others = Alone(*store);
  CHECK(absl::IsInvalidArgument(bench.Record().status()));
}

TEST_CASE("a program that names Triton runs where what it can make kernels of is its own") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const std::string program = "import triton, load_inline";
  const nlohmann::json list = {{"name", "triton_kernels"}, {"kernels", "[]"}};
  const nlohmann::json script = {
      {"warm", {{"triton_version", "3.6.0"}}}, {"records", {list}}, {"complete", true}};
  Bench bench(*store, script);
  CHECK(*bench.Record(Soon(), program) == nlohmann::json::array({list}).dump());
  CHECK(bench.own_kernels);
  CHECK(bench.Record().ok());
  CHECK_FALSE(bench.own_kernels);

  nlohmann::json without = script;
  without.erase("warm");
  Bench lacking(*store, without);
  CHECK(lacking.Record(Soon(), program).ok());
  CHECK_FALSE(lacking.own_kernels);
}

TEST_CASE(
    "a program that names Triton and lacks files runs once more without it, if it wants more than that") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const nlohmann::json lacks = {{"op", "failed"}, {"error", "ModuleNotFoundError: No module named 'numba'"}};
  const nlohmann::json script = {
      {"warm", {{"triton_version", "3.6.0"}}},
      {"records", {{{"name", "a"}}}},
      {"complete", true},
      {"answers", {{"record on host, for kernels", lacks}, {"record on gpu, called, for kernels", lacks}}}};
  Bench both(*store, script);
  CHECK(*both.Record(Soon(), "import triton, load_inline") == R"([{"name":"a"}])");
  CHECK_FALSE(both.own_kernels);
  Bench one(*store, script);
  CHECK(*one.Record(Soon(), "import triton") == "[]");
  CHECK_FALSE(one.own_kernels);

  nlohmann::json raises = script;
  raises["answers"] = {{"record on host, for kernels", kRaises},
                       {"record on gpu, called, for kernels", kRaises}};
  Bench wrong(*store, raises);
  CHECK(absl::IsInvalidArgument(wrong.Record(Soon(), "import triton, load_inline").status()));
}

TEST_CASE("a program at fault, a task at fault and too little time are told apart") {
  CHECK(absl::IsInvalidArgument(Bench(HostStore(), {{"answers", {{"record", kRaises}}}}).Record().status()));
  CHECK(absl::IsFailedPrecondition(
      Bench(HostStore(), {{"answers", {{"load", {{"op", "failed"}, {"error", "no Model"}}}}}})
          .Record()
          .status()));
  CHECK(absl::IsDeadlineExceeded(Bench(HostStore(), {{"answers", {{"record", "silent"}}}})
                                     .Record(absl::Now() + absl::Seconds(1))
                                     .status()));
}

}  // namespace
}  // namespace warpsmith
