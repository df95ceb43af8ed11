// Outputs of Python programs on a GPU, on the fake driver: what a jail says of them may be anything.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/unique_fd.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/fuzz/puppet.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

constexpr int64_t kAllocationBytes = 4096;
constexpr double kTurnSeconds = 2e-3;  // that a launch of the fake driver takes at least where it is busy

const PuppetMaster& Puppets() {
  static const auto* const puppets = new PuppetMaster;
  return *puppets;
}

// float32[4] in and out.
TaskLayout Layout() {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {4}}};
  return *MakeLayout({{"inputs", {tensor}}, {"parameters", nlohmann::json::array()}, {"outputs", {tensor}}},
                     1 << 20);
}

// A program's own allocation, which has these floats one after the other from its start on.
struct Allocation {
  explicit Allocation(const std::vector<float>& values) : fd(memfd_create("allocation", MFD_CLOEXEC)) {
    REQUIRE(ftruncate(fd.get(), kAllocationBytes) == 0);
    const size_t num_bytes = values.size() * sizeof(float);
    REQUIRE(pwrite(fd.get(), values.data(), num_bytes, 0) == static_cast<ssize_t>(num_bytes));
  }
  std::string handle() const { return HandleOf(fd.get()); }

  const UniqueFd fd;
};

// A jail whose program ended its call with an output at this place.
struct Bench {
  Bench(const std::string& handle, const std::string& offset, const std::string& strides = "[1]") {
    store = *GpuStore::Open(0);
    const std::string place =
        absl::StrCat(R"({"code":2,"bits":32,"dtype":"torch.float32","pointer":4096,"shape":[4],"strides":)",
                     strides, R"(,"handle":")", handle, R"(","offset":)", offset, "}");
    const TaskLayout layout = Layout();
    const std::string done = absl::StrCat(R"({"op":"done","result":0,"outputs":[)", place, "]}\n");
    jail = std::make_unique<Jail>(Puppets().Make(absl::StrCat("{\"op\":\"ready\"}\n", done, done, "{}\n")),
                                  *MakeBuffers(*store, layout, CandidateKind::kKernelBenchPython), layout,
                                  JudgeLimits{});
    draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
    const float values[] = {1, 2, 3, 4};
    std::memcpy(draw.inputs.get() + layout.inputs[0].offset, values, sizeof(values));
    input_offset = layout.inputs[0].offset;
    REQUIRE_FALSE(*jail->Begin({.kind = CandidateKind::kKernelBenchPython, .source_fd = 0}, nullptr));
    jail->Load(draw);
    REQUIRE_FALSE(jail->Run());
  }

  // Empty where it cannot be read.
  std::vector<float> Output() {
    const absl::StatusOr<const void*> bytes = jail->Output(0, fault);
    if (!bytes.ok()) return {};
    const auto* const values = static_cast<const float*>(*bytes);
    return {values, values + 4};
  }

  std::unique_ptr<GpuStore> store;
  std::unique_ptr<Jail> jail;
  Draw draw;
  int64_t input_offset = 0;
  Fault fault;
};

TEST_CASE("an output is read from the allocation that holds it, behind what lies before it") {
  const FakeGpu gpu;
  const Allocation allocation({9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(Bench(allocation.handle(), "0").Output() == std::vector<float>{9, 8, 7, 6});
  CHECK(Bench(allocation.handle(), "8").Output() == std::vector<float>{7, 6, 5, 4});
  CHECK(Bench(allocation.handle(), "4", "[2]").Output() == std::vector<float>{8, 6, 4, 2});
}

TEST_CASE("what the GPU does once a call is loaded is waited for, and counts as the call's") {
  FakeGpu gpu;
  const Allocation allocation({1, 2, 3, 4});
  Bench bench(allocation.handle(), "0");
  gpu.Say("busy 3\n");
  bench.jail->Load(bench.draw);
  CHECK(gpu.script() == "busy 0\n");
  REQUIRE_FALSE(bench.jail->Run());
  CHECK(bench.jail->after_seconds() >= 3 * kTurnSeconds);
}

TEST_CASE("what the GPU does once inputs are withdrawn counts as the call's") {
  FakeGpu gpu;
  const Allocation allocation({1, 2, 3, 4});
  Bench bench(allocation.handle(), "0");
  const double before = bench.jail->after_seconds();
  gpu.Say("busy 2\n");
  bench.jail->WithdrawInputs();
  CHECK(gpu.script() == "busy 0\n");
  CHECK(bench.jail->after_seconds() >= before + 2 * kTurnSeconds);
}

TEST_CASE("a place that is none is the program's fault, and the GPU stays healthy") {
  const FakeGpu gpu;
  const Allocation allocation({9, 8, 7, 6});
  const std::string handle = allocation.handle();
  const auto check = [](Bench bench) {
    CHECK(bench.Output().empty());
    CHECK(bench.fault.verdict == v1::VERDICT_RUNTIME_ERROR);
    CHECK(bench.fault.reason == "output 0 lies in no readable memory");
    CHECK(bench.store->Health().ok());
  };
  for (const char* const offset : {"-1", "4081", "4096", "9223372036854775807", "1e99", "\"0\"", "null"}) {
    INFO(offset);
    check({handle, offset});
    check({"", offset});
  }
  check({handle, "0", "[1024]"});
  check({handle, "0", "[-1]"});
  check({"", "0", "[1024]"});
  check({std::string(128, 'f'), "0"});
  check({handle.substr(2), "0"});
  check({"no", "0"});
}

TEST_CASE("an output in the inputs' memory is theirs: gone once they are withdrawn") {
  const FakeGpu gpu;
  Bench bench("", "0");
  REQUIRE(bench.input_offset == 0);
  CHECK(bench.Output() == std::vector<float>{1, 2, 3, 4});
  bench.jail->WithdrawInputs();
  CHECK(bench.Output() != std::vector<float>{1, 2, 3, 4});
  bench.jail->RestoreInputs(bench.draw);
  CHECK(bench.Output() == std::vector<float>{1, 2, 3, 4});
}

// Two outputs of four floats on the host, by their addresses and the step between their elements.
std::optional<Fault> FaultOfTwo(int64_t first, int64_t second, int stride) {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {4}}};
  const nlohmann::json none = nlohmann::json::array();
  const TaskLayout layout =
      *MakeLayout({{"inputs", {tensor}}, {"parameters", none}, {"outputs", {tensor, tensor}}}, 1 << 20);
  std::string places;
  for (const int64_t pointer : {first, second}) {
    absl::StrAppend(&places, places.empty() ? "" : ",", R"({"code":2,"bits":32,"pointer":)", pointer,
                    R"(,"shape":[4],"strides":[)", stride, "]}");
  }
  const std::string done = absl::StrCat(R"({"op":"done","result":0,"outputs":[)", places, "]}\n{}\n");
  Jail jail(Puppets().Make(absl::StrCat("{\"op\":\"ready\"}\n", done)),
            *MakeBuffers(HostStore(), layout, CandidateKind::kKernelBenchPython), layout, JudgeLimits{});
  Draw draw;
  draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
  REQUIRE_FALSE(*jail.Begin({.kind = CandidateKind::kKernelBenchPython, .source_fd = 0}, nullptr));
  jail.Load(draw);
  REQUIRE_FALSE(jail.Run());
  return jail.CheckApart(0);
}

TEST_CASE("two outputs of a call lie apart, or their elements take turns") {
  CHECK_FALSE(FaultOfTwo(8192, 8192 + 16, 1));
  CHECK_FALSE(FaultOfTwo(8192, 8192 + 4, 2));
  for (const int64_t second : {8192, 8192 + 12, 8192 - 12}) {
    CHECK(FaultOfTwo(8192, second, 1).value().reason.ends_with("in the same memory; the reference's do not"));
  }
  CHECK(FaultOfTwo(8192, 8192, 2).value().verdict == v1::VERDICT_HACK);
}

TEST_CASE("memory that was returned once has to be written again, and counts once") {
  const FakeGpu gpu;
  const Allocation allocation({9, 8, 7, 6, 5, 4, 3, 2, 1});
  Bench bench(allocation.handle(), "4");
  CHECK(bench.jail->returned_bytes() == 16);
  bench.jail->PoisonFormerOutputs();  // there is no run before the last one yet
  CHECK(bench.Output() == std::vector<float>{8, 7, 6, 5});
  bench.jail->Load(bench.draw);
  REQUIRE_FALSE(bench.jail->Run());
  bench.jail->PoisonFormerOutputs();
  const std::vector<float> output = bench.Output();
  CHECK(std::all_of(output.begin(), output.end(), [](float value) { return std::isnan(value); }));
  CHECK(bench.jail->returned_bytes() == 16);
  float around[9];
  REQUIRE(pread(allocation.fd.get(), around, sizeof(around), 0) == sizeof(around));
  CHECK(around[0] == 9);
  CHECK(around[5] == 4);
}

}  // namespace
}  // namespace warpsmith
