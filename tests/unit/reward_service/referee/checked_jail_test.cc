#include "reward_service/referee/checked_jail.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/fuzz/puppet.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/puppet_zygote.h"

namespace warpsmith {
namespace {

constexpr int kNumElements = 4;

const PuppetMaster& Puppets() {
  static const auto* const puppets = new PuppetMaster;
  return *puppets;
}

TaskLayout Layout() {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {kNumElements}}};
  const nlohmann::json one = nlohmann::json::array({tensor});
  return *MakeLayout({{"inputs", one}, {"parameters", nlohmann::json::array()}, {"outputs", one}}, 1 << 20);
}

// A draw whose outputs are all `value`.
Draw Expecting(const TaskLayout& layout, float value) {
  Draw draw;
  draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
  draw.expected = std::make_unique<char[]>(static_cast<size_t>(layout.output_buffer_bytes));
  auto* const expected = reinterpret_cast<float*>(draw.expected.get() + layout.outputs[0].offset);
  for (int i = 0; i < kNumElements; ++i) expected[i] = value;
  draw.tolerances = {{.absolute = 0.1}};
  return draw;
}

// What a Python jail says whose output is zeros.
std::string Zeros() {
  return absl::StrCat(R"({"op":"done","result":0,"outputs":[{"code":2,"bits":32,"dtype":"torch.float32",)",
                      R"("pointer":)", Puppets().memory(), R"(,"shape":[4],"strides":[1]}]})", "\n");
}

// A jail that is ready, and then answers with `lines`.
CheckedJail Ready(CandidateKind kind, const TaskLayout& layout, const std::string& lines,
                  v1::Measurement* measurement, int calls_max = 1) {
  auto buffers = MakeBuffers(HostStore(), layout, kind, calls_max);
  WS_CHECK(buffers.ok());
  const std::string ready = "{\"op\":\"ready\",\"parameters_loaded\":true}\n";
  // A puppet ends with its last line, which nobody asks for here.
  auto jail = std::make_unique<Jail>(Puppets().Make(ready + lines + "{}\n"), *std::move(buffers), layout,
                                     JudgeLimits{.cpu_seconds_max = 1, .call_seconds_max = 2});
  const auto fault = *jail->Begin({.kind = kind, .library_fd = 0, .source_fd = 0}, nullptr);
  WS_CHECK(!fault) << fault->reason;
  return CheckedJail(
      std::move(jail), kind, layout, &PuppetLane(), [](Buffers) {}, measurement, absl::Now());
}

// Whether a program with a second thread, whose tensors lie in `store`, has threads to spread.
bool Spreads(TensorStore& store) {
  const auto zygote = StartPuppets({{"has_thread", true}});
  auto process = zygote->Fork({.memory_bytes_max = 1 << 30, .cpu_seconds_max = 10});
  WS_CHECK(process.ok() && (*process)->AwaitHello(absl::Now() + absl::Seconds(60)).ok());
  const TaskLayout layout = Layout();
  auto jail = std::make_unique<Jail>(*std::move(process), *MakeBuffers(store, layout, CandidateKind::kNative),
                                     layout, JudgeLimits{});
  WS_CHECK(!*jail->Begin({.library_fd = 0}, nullptr));
  v1::Measurement measurement;
  CheckedJail program(
      std::move(jail), CandidateKind::kNative, layout, &PuppetLane(), [](Buffers) {}, &measurement,
      absl::Now());
  return *program.SpreadThreads();
}

TEST_CASE("threads are spread on a CPU, and not on a GPU, where the driver has some") {
  const FakeGpu gpu;
  CHECK(Spreads(HostStore()));
  CHECK_FALSE(Spreads(**GpuStore::Open(0)));
}

TEST_CASE(
    "a Python program is first called in room 0, where its parameters lie, and then in rooms drawn by lot") {
  TaskLayout layout = Layout();
  layout.parameters = layout.inputs;
  std::set<int64_t> second_rooms;
  for (int run = 0; run < 200 && second_rooms.size() < 3; ++run) {
    auto buffers = *MakeBuffers(HostStore(), layout, CandidateKind::kKernelBenchPython, /*calls_max=*/3);
    const char* const rooms = buffers.inputs->Read(0, 0);
    Jail jail(Puppets().Make("{}\n"), std::move(buffers), layout, JudgeLimits{});
    Draw first = Expecting(layout, 0), second = Expecting(layout, 0);
    *first.inputs.get() = 'i';
    *second.inputs.get() = 'j';
    jail.Load({&first, &second});
    CHECK(rooms[0] == 'i');
    for (int64_t room = 1; room < 4; ++room) {
      if (rooms[room * layout.input_buffer_bytes] == 'j') second_rooms.insert(room);
    }
  }
  CHECK(second_rooms.size() == 3);
}

TEST_CASE("the outputs of all calls of a batch are compared, and those of the batch before") {
  const TaskLayout layout = Layout();
  const Draw right = Expecting(layout, 0);
  const Draw wrong = Expecting(layout, 5);
  std::string twice = Zeros();
  const std::string place = twice.substr(twice.find('[') + 1, twice.rfind(']') - twice.find('[') - 1);
  twice.insert(twice.rfind(']'), "," + place);
  v1::Measurement measurement;
  CheckedJail jail = Ready(CandidateKind::kKernelBenchPython, layout, twice + twice + twice, &measurement, 2);
  CHECK_FALSE(jail.CallAll({&right, &right}, Comparing::kFast));
  const auto second = jail.CallAll({&right, &wrong}, Comparing::kFast);
  REQUIRE(second);
  CHECK(second->reason == "4 of 4 elements wrong in a later call; output 0 [0]: 0, expected 5");
  const auto former = jail.CallAll({&right, &right}, Comparing::kFast);
  REQUIRE(former);
  CHECK(former->reason.find("of an earlier call was changed") != std::string::npos);
}

TEST_CASE("a right output is no fault, and counts where numbers are wanted") {
  const TaskLayout layout = Layout();
  const Draw draw = Expecting(layout, 0.05F);
  v1::Measurement measurement;
  CheckedJail jail =
      Ready(CandidateKind::kKernelBenchPython, layout, Zeros() + Zeros() + Zeros(), &measurement);
  CHECK_FALSE(jail.Call(draw, Comparing::kNumbers));
  CHECK_FALSE(jail.Call(draw, Comparing::kFast));
  CHECK(measurement.grade().correctness().num_draws() == 1);
  CHECK(measurement.grade().correctness().num_elements() == kNumElements);
  CHECK(measurement.grade().correctness().max_absolute_error() == Approx(0.05));
  CHECK(jail.us() > 0);
}

// A draw whose outputs are zeros but for one, of which one may be an outlier.
Draw WithOutlier(const TaskLayout& layout, int place) {
  Draw draw = Expecting(layout, 0);
  reinterpret_cast<float*>(draw.expected.get() + layout.outputs[0].offset)[place] = 5;
  draw.tolerances[0].outliers_max = 1;
  return draw;
}

TEST_CASE("a rare outlier is right anywhere, but not at one element in one draw after another") {
  const TaskLayout layout = Layout();
  const Draw first = WithOutlier(layout, 2), second = WithOutlier(layout, 1);
  v1::Measurement measurement;
  CheckedJail jail =
      Ready(CandidateKind::kKernelBenchPython, layout, Zeros() + Zeros() + Zeros() + Zeros(), &measurement);
  CHECK_FALSE(jail.Call(first, Comparing::kNumbers));
  CHECK_FALSE(jail.Call(second, Comparing::kNumbers));
  CHECK_FALSE(jail.Call(second, Comparing::kFast));
  const auto fault = jail.Call(second, Comparing::kNumbers);
  REQUIRE(fault);
  CHECK(fault->verdict == v1::VERDICT_INCORRECT);
  CHECK(fault->reason == "one element wrong in two draws; output 0 [1]");
}

TEST_CASE("the margins of a draw lie behind its outputs") {
  const TaskLayout layout = Layout();
  Draw draw = Expecting(layout, 5);
  auto bytes = std::make_unique<char[]>(static_cast<size_t>(layout.exact_output_bytes()));
  std::copy_n(draw.expected.get(), layout.output_buffer_bytes, bytes.get());
  const std::vector<float> margins = {8, 8, 8, 0.25F};
  std::memcpy(bytes.get() + layout.outputs[0].margins_offset, margins.data(), margins.size() * sizeof(float));
  draw.expected = std::move(bytes);
  draw.tolerances = {{.has_margins = true}};
  v1::Measurement measurement;
  CheckedJail jail = Ready(CandidateKind::kKernelBenchPython, layout, Zeros(), &measurement);
  const auto fault = jail.Call(draw, Comparing::kNumbers);
  REQUIRE(fault);
  CHECK(fault->reason == "1 of 4 elements wrong; output 0 [3]: 0, expected 5");
}

TEST_CASE("a wrong output is a fault with its first difference, and says when it came") {
  const TaskLayout layout = Layout();
  const Draw draw = Expecting(layout, 3);
  for (const Comparing comparing : {Comparing::kNumbers, Comparing::kFast}) {
    v1::Measurement measurement;
    CheckedJail jail = Ready(CandidateKind::kKernelBenchPython, layout, Zeros(), &measurement);
    const auto fault = jail.Call(draw, comparing);
    REQUIRE(fault);
    CHECK(fault->verdict == v1::VERDICT_INCORRECT);
    const bool later = comparing == Comparing::kFast;
    CHECK(fault->reason == absl::StrCat("4 of 4 elements wrong", later ? " in a later call" : "",
                                        "; output 0 [0]: 0, expected 3"));
    CHECK(measurement.grade().correctness().num_wrong() == 4);
  }
}

TEST_CASE("what a native program has not written is wrong") {
  const TaskLayout layout = Layout();
  const Draw draw = Expecting(layout, 0);
  v1::Measurement measurement;
  CheckedJail jail = Ready(CandidateKind::kNative, layout, "{\"op\":\"done\",\"result\":0}\n", &measurement);
  const auto fault = jail.Call(draw, Comparing::kNumbers);
  REQUIRE(fault);
  CHECK(fault->verdict == v1::VERDICT_INCORRECT);
}

TEST_CASE("unusual inputs and other parameters are named where the program is wrong on them") {
  const TaskLayout layout = Layout();
  Draw draw = Expecting(layout, 3);
  draw.own_distribution = false;
  draw.style = "large";
  draw.parameter_seed = 7;
  v1::Measurement measurement;
  CheckedJail jail = Ready(CandidateKind::kKernelBenchPython, layout, Zeros(), &measurement);
  CHECK(jail.Call(draw, Comparing::kNumbers)->reason ==
        "4 of 4 elements wrong on large inputs, with other parameters; output 0 [0]: 0, expected 3");
}

TEST_CASE("what the program says of itself stays a fault: an error, another answer, none") {
  const TaskLayout layout = Layout();
  const Draw draw = Expecting(layout, 0);
  const auto fault = [&](const std::string& line) {
    v1::Measurement measurement;
    return Ready(CandidateKind::kKernelBenchPython, layout, line, &measurement)
        .Call(draw, Comparing::kFast)
        ->verdict;
  };
  CHECK(fault("{\"op\":\"failed\",\"error\":\"ValueError\"}\n") == v1::VERDICT_RUNTIME_ERROR);
  CHECK(fault("{\"op\":\"ready\"}\n") == v1::VERDICT_RUNTIME_ERROR);
  CHECK(fault("") == v1::VERDICT_RUNTIME_ERROR);
}

}  // namespace
}  // namespace warpsmith
