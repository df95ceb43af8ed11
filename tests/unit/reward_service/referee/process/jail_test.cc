#include "reward_service/referee/process/jail.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "reward_service/referee/tensors/comparison.h"
#include "tests/fuzz/puppet.h"
#include "tests/support/catch.h"
#include "tests/support/forked_child.h"

namespace warpsmith {
namespace {

constexpr int kNumElements = 4;
constexpr char kReady[] = "{\"op\":\"ready\",\"parameters_loaded\":true}\n";
const JudgeLimits kLimits{.cpu_seconds_max = 3, .call_seconds_max = 60};

const PuppetMaster& Puppets() {
  static const auto* const puppets = new PuppetMaster;
  return *puppets;
}

// float32[4] and parameters of the same kind in, two of them out.
TaskLayout Layout() {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {kNumElements}}};
  nlohmann::json parameter = tensor;
  parameter["name"] = "weight";
  return *MakeLayout({{"inputs", {tensor}}, {"parameters", {parameter}}, {"outputs", {tensor, tensor}}},
                     1 << 20);
}

// A jail with a look at its buffers.
struct Bench {
  Bench(CandidateKind kind, std::unique_ptr<ChildProcess> child, TaskLayout task_layout = Layout(),
        JudgeLimits limits = kLimits, int calls_max = 1)
      : kind(kind), layout(std::move(task_layout)) {
    Buffers buffers = *MakeBuffers(HostStore(), layout, kind, calls_max);
    inputs = const_cast<char*>(buffers.inputs->Read(0, 0));
    for (const auto& buffer : buffers.outputs) outputs.push_back(const_cast<char*>(buffer->Read(0, 0)));
    jail = std::make_unique<Jail>(std::move(child), std::move(buffers), layout, limits);
    draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
    std::fill_n(draw.inputs.get(), layout.input_buffer_bytes, 'i');
  }

  std::optional<Fault> Begin() {
    return *jail->Begin({.kind = kind, .library_fd = 0, .source_fd = 0}, nullptr);
  }
  std::optional<Fault> BeginAndRun() {
    if (auto fault = Begin()) return fault;
    jail->Load(draw);
    return jail->Run();
  }

  const CandidateKind kind;
  const TaskLayout layout;
  char* inputs = nullptr;
  std::vector<char*> outputs;
  Draw draw;
  std::unique_ptr<Jail> jail;
};

// A puppet ends with its last line, which nobody asks for here.
Bench Native(const std::string& lines) {
  return {CandidateKind::kNative, Puppets().Make(kReady + lines + "\n{}\n")};
}
Bench Python(const std::string& lines) {
  return {CandidateKind::kKernelBenchPython, Puppets().Make(kReady + lines + "\n{}\n")};
}

template <typename Life>
Bench Forked(const Life& life, JudgeLimits limits = kLimits) {
  return {CandidateKind::kNative, ForkChild([&](int socket, int) {
            AwaitPacket(socket);
            (void)SendPacket(socket, {{"op", "ready"}});
            AwaitPacket(socket);
            life(socket);
          }),
          Layout(), limits};
}

bool AreAll(const char* bytes, int64_t number, unsigned char value) {
  return std::all_of(bytes, bytes + number,
                     [&](char byte) { return static_cast<unsigned char>(byte) == value; });
}

std::string Place(uint64_t pointer, const std::string& shape = "[4]", const std::string& strides = "[1]",
                  const std::string& type = "\"code\":2,\"bits\":32,\"dtype\":\"torch.float32\"") {
  return absl::StrCat("{", type, ",\"pointer\":", pointer, ",\"shape\":", shape, ",\"strides\":", strides,
                      "}");
}
std::string Done(const std::string& first, const std::string& second) {
  return absl::StrCat(R"({"op":"done","result":0,"outputs":[)", first, ",", second, "]}");
}

TEST_CASE("a jail begins without what another has left in its buffers") {
  Bench bench = Native("");
  std::fill_n(bench.inputs, bench.layout.input_buffer_bytes, 'x');
  for (char* const output : bench.outputs) std::fill_n(output, bench.layout.output_buffer_bytes, 'x');
  REQUIRE_FALSE(bench.Begin());
  CHECK(AreAll(bench.inputs, bench.layout.input_buffer_bytes, 0));
  for (char* const output : bench.outputs) {
    for (const TensorSpec& spec : bench.layout.outputs)
      CHECK(AreAll(output + spec.offset, spec.num_bytes, kPoisonByte));
    CHECK(AreAll(output, bench.layout.outputs[0].offset, 0xA5));
  }
  CHECK_FALSE(bench.jail->CheckBuffers(bench.draw));
}

TEST_CASE("each call has its inputs, and outputs that are not written, in the other slot") {
  Bench bench = Native("");
  REQUIRE_FALSE(bench.Begin());
  std::vector<const void*> slots;
  for (int call = 0; call < 3; ++call) {
    for (char* const output : bench.outputs) std::fill_n(output + bench.layout.outputs[0].offset, 16, 'x');
    bench.jail->Load(bench.draw);
    CHECK(AreAll(bench.inputs, bench.layout.input_buffer_bytes, 'i'));
    Fault fault;
    slots.push_back(*bench.jail->Output(0, fault));
    CHECK(AreAll(static_cast<const char*>(slots.back()), 16, kPoisonByte));
  }
  CHECK(slots[0] != slots[1]);
  CHECK(slots[0] == slots[2]);
}

// A native program without a run, with rooms for so many calls.
Bench WithRooms(int calls_max) {
  return {CandidateKind::kNative, Puppets().Make(absl::StrCat(kReady, "\n{}\n")), Layout(), kLimits,
          calls_max};
}

// The room of a call of the first run, which has the second slot of outputs.
size_t RoomOf(Bench& bench, size_t call) {
  Fault fault;
  const auto* const output = static_cast<const char*>(*bench.jail->Output(1, fault, call));
  const int64_t start = output - bench.outputs[1] - bench.layout.outputs[1].offset;
  return static_cast<size_t>(start / bench.layout.output_buffer_bytes);
}

TEST_CASE("each call of a run has room of its own, between guards of its own") {
  Bench bench = WithRooms(3);
  REQUIRE_FALSE(bench.Begin());
  const int64_t input_bytes = bench.layout.input_buffer_bytes;
  const int64_t output_bytes = bench.layout.output_buffer_bytes;
  Draw other;
  other.inputs = std::make_unique<char[]>(static_cast<size_t>(input_bytes));
  std::fill_n(other.inputs.get(), input_bytes, 'j');
  bench.jail->Load({&bench.draw, &other});
  CHECK(bench.draw.shown);
  CHECK(other.shown);
  const size_t first = RoomOf(bench, 0), second = RoomOf(bench, 1);
  CHECK(first != second);
  CHECK(AreAll(bench.inputs + first * input_bytes, input_bytes, 'i'));
  CHECK(AreAll(bench.inputs + second * input_bytes, input_bytes, 'j'));
  bench.outputs[1][(first + 1) * output_bytes - 1] = 0;  // behind the outputs of the first call
  const auto touched = bench.jail->CheckBuffers(bench.draw, 0);
  REQUIRE(touched);
  CHECK(touched->out_of_bounds);
  CHECK_FALSE(bench.jail->CheckBuffers(other, 1));
}

TEST_CASE("rooms are drawn by lot, and what is written in one that is left out is told") {
  std::set<size_t> left_out;
  for (int run = 0; run < 200 && left_out.size() < 4; ++run) {
    Bench bench = WithRooms(3);
    REQUIRE_FALSE(bench.Begin());
    bench.jail->Load({&bench.draw, &bench.draw, &bench.draw});
    const auto write = [&](size_t room) {
      std::fill_n(bench.outputs[1] + room * bench.layout.output_buffer_bytes + bench.layout.outputs[0].offset,
                  bench.layout.outputs[0].num_bytes, 'x');
    };
    for (size_t call = 0; call < 3; ++call) write(RoomOf(bench, call));
    CHECK_FALSE(bench.jail->CheckIdleRooms());
    const size_t idle = 0 + 1 + 2 + 3 - RoomOf(bench, 0) - RoomOf(bench, 1) - RoomOf(bench, 2);
    write(idle);
    CHECK(bench.jail->CheckIdleRooms().value().verdict == v1::VERDICT_INCORRECT);
    left_out.insert(idle);
  }
  CHECK(left_out.size() == 4);
}

TEST_CASE("a Python program answers each call of a run") {
  const auto number = [](const std::string& places) {
    Bench bench(
        CandidateKind::kKernelBenchPython,
        Puppets().Make(absl::StrCat(kReady, R"({"op":"done","result":0,"outputs":[)", places, "]}\n{}\n")),
        Layout(), kLimits, /*calls_max=*/2);
    REQUIRE_FALSE(bench.Begin());
    bench.jail->Load({&bench.draw, &bench.draw});
    const auto fault = bench.jail->Run();
    return fault ? fault->reason : "";
  };
  CHECK(number("{},{},{},{}").empty());
  CHECK(number("{},{}") == "2 output tensors, expected 4");
}

TEST_CASE("a guard that was touched, before, between or behind the outputs, is a fault") {
  Bench bench = Native("");
  REQUIRE_FALSE(bench.Begin());
  bench.jail->Load(bench.draw);
  char* const slot = bench.outputs[1];  // the first call has the second one
  const TensorSpec& second = bench.layout.outputs[1];
  const std::vector<int64_t> places = {0, bench.layout.outputs[0].offset - 1, second.offset - 1,
                                       second.offset + second.num_bytes,
                                       bench.layout.output_buffer_bytes - 1};
  for (const int64_t place : places) {
    const char before = std::exchange(slot[place], 'x');
    const auto fault = bench.jail->CheckBuffers(bench.draw);
    INFO(place);
    REQUIRE(fault);
    CHECK(fault->verdict == v1::VERDICT_INCORRECT);
    CHECK(fault->out_of_bounds);
    slot[place] = before;
  }
  slot[second.offset] = 'x';
  CHECK_FALSE(bench.jail->CheckBuffers(bench.draw));
}

TEST_CASE("a Python candidate's input that was changed is a fault; its parameters are its own affair") {
  Bench bench = Python("");
  REQUIRE_FALSE(bench.Begin());
  bench.jail->Load(bench.draw);
  bench.inputs[bench.layout.parameters[0].offset] = 'x';
  CHECK_FALSE(bench.jail->CheckBuffers(bench.draw));
  bench.inputs[bench.layout.inputs[0].offset + 15] = 'x';
  const auto fault = bench.jail->CheckBuffers(bench.draw);
  REQUIRE(fault);
  CHECK(fault->reason == "input 0 was changed");
  CHECK(fault->input_mutated);
}

TEST_CASE("inputs are withdrawn without parameters, unless the reference gives its inputs back itself") {
  Bench bench = Python("");
  REQUIRE_FALSE(bench.Begin());
  bench.jail->Load(bench.draw);
  bench.jail->WithdrawInputs();
  CHECK(AreAll(bench.inputs, 16, kPoisonByte));
  CHECK(AreAll(bench.inputs + bench.layout.parameters[0].offset, 16, 'i'));
  bench.jail->RestoreInputs(bench.draw);
  CHECK(AreAll(bench.inputs, 16, 'i'));
  TaskLayout borrowing = Layout();
  borrowing.outputs[1].borrowed = true;
  Bench lax(CandidateKind::kKernelBenchPython, Puppets().Make(kReady), borrowing);
  lax.jail->Load(lax.draw);
  lax.jail->WithdrawInputs();
  CHECK(AreAll(lax.inputs, 16, 'i'));
}

TEST_CASE("a Python jail begins with the parameters that its model was constructed with") {
  Bench bench = Python("");
  const Program program{.kind = bench.kind, .source_fd = 0, .construction = &bench.draw};
  REQUIRE_FALSE(*bench.jail->Begin(program, nullptr));
  CHECK(AreAll(bench.inputs, 16, 0));
  CHECK(AreAll(bench.inputs + bench.layout.parameters[0].offset, 16, 'i'));
  CHECK(bench.jail->parameters_loaded());
}

TEST_CASE("whether a program takes parameters is believed only where it says so plainly") {
  for (const char* said : {"{\"op\":\"ready\"}\n{}", "{\"op\":\"ready\",\"parameters_loaded\":1}\n{}"}) {
    Bench bench(CandidateKind::kKernelBenchPython, Puppets().Make(said));
    REQUIRE_FALSE(bench.Begin());
    CHECK_FALSE(bench.jail->parameters_loaded());
  }
}

TEST_CASE("a program that does not load says why, in little and harmless text") {
  const auto reason = [](const std::string& line) {
    Bench bench(CandidateKind::kNative, Puppets().Make(line + "\n{}\n"));
    const Fault fault = bench.Begin().value();
    CHECK(fault.verdict == v1::VERDICT_RUNTIME_ERROR);
    return fault.reason;
  };
  CHECK(reason(R"({"op":"failed","error":"no `run`"})") == "no `run`");
  CHECK(reason(R"({"op":"done"})") == "the program answered out of turn");
  CHECK(reason("no JSON").find("the program broke its channel") == 0);
  CHECK(reason(R"({"op":"failed","error":"a\u001b[31m"})").find('\x1b') == std::string::npos);
  CHECK(reason(absl::StrCat(R"({"op":"failed","error":")", std::string(5000, 'e'), "\"}")).size() <= 600);
}

TEST_CASE("a call that does not return zero is a runtime error, and so is one that says nothing of it") {
  CHECK(Native(R"({"op":"done","result":3})").BeginAndRun()->reason == "run() returned 3");
  CHECK(Native(R"({"op":"done"})").BeginAndRun()->verdict == v1::VERDICT_RUNTIME_ERROR);
  CHECK(Native(R"({"op":"done","result":"0"})").BeginAndRun()->verdict == v1::VERDICT_RUNTIME_ERROR);
  CHECK(Native(R"({"op":"ready"})").BeginAndRun()->reason == "the program answered out of turn");
  Bench right = Native(R"({"op":"done","result":0})");
  CHECK_FALSE(right.BeginAndRun());
  CHECK(right.jail->seconds() > 0);
}

TEST_CASE("a call without an answer is a timeout at its limit") {
  Bench bench =
      Forked([](int socket) { StaySilent(socket); }, {.cpu_seconds_max = 3, .call_seconds_max = 0.02});
  const auto fault = bench.BeginAndRun();
  REQUIRE(fault);
  CHECK(fault->verdict == v1::VERDICT_TIMEOUT);
  CHECK(fault->reason == "no result after 0.02 s");
}

TEST_CASE("a program that ends is told by how: CPU time, a signal, its own exit") {
  const auto fault = [](auto life) { return *Forked(life).BeginAndRun(); };
  const Fault used_up = fault([](int) { (void)kill(getpid(), SIGXCPU); });
  CHECK(used_up.verdict == v1::VERDICT_TIMEOUT);
  CHECK(used_up.reason == "used up 3 s of CPU time");
  CHECK(fault([](int) { (void)kill(getpid(), SIGABRT); }).reason ==
        "the program was ended by signal 6 (Aborted) before its result");
  CHECK(fault([](int) { _exit(4); }).reason == "the program exited with code 4 before its result");
}

TEST_CASE("an answer with a descriptor breaks the channel") {
  Bench bench = Forked([](int socket) {
    (void)SendPacket(socket, {{"op", "done"}, {"result", 0}}, {socket});
    StaySilent(socket);
  });
  const auto fault = bench.BeginAndRun();
  REQUIRE(fault);
  CHECK(fault->reason == "the program broke its channel: an answer with descriptors");
}

TEST_CASE("a crash is told by its place: in an input, before or behind a buffer, in withheld code") {
  const auto crash = [](const std::string& fields) {
    const auto fault = Native(absl::StrCat(R"({"op":"crash","signal":11)", fields, "}")).BeginAndRun();
    REQUIRE(fault);
    return *fault;
  };
  CHECK(crash("").reason == "crashed: Segmentation fault");
  const Fault input = crash(R"(,"buffer":"input","offset":15,"bytes":16)");
  CHECK(input.verdict == v1::VERDICT_INCORRECT);
  CHECK(input.input_mutated);
  const Fault behind = crash(R"(,"buffer":"output","offset":20,"bytes":16)");
  CHECK(behind.verdict == v1::VERDICT_RUNTIME_ERROR);
  CHECK(behind.out_of_bounds);
  CHECK(behind.reason == "crashed: Segmentation fault, 4 bytes behind the output buffer");
  CHECK(crash(R"(,"buffer":"input","offset":-8,"bytes":16)").reason ==
        "crashed: Segmentation fault, 8 bytes before the input buffer");
  CHECK(crash(R"(,"withheld":true)").withheld);
  for (const char* said : {"false", "1", "\"true\""})
    CHECK_FALSE(crash(absl::StrCat(R"(,"withheld":)", said)).withheld);
  CHECK_FALSE(crash(R"(,"buffer":"stack","offset":20,"bytes":16)").out_of_bounds);
  CHECK(Native(R"({"op":"crash","signal":1000})").BeginAndRun()->reason == "crashed: Segmentation fault");
}

TEST_CASE("Python outputs are as many as the reference's, of its shapes and dtypes") {
  const uint64_t memory = Puppets().memory();
  CHECK(Python(R"({"op":"done","result":0})").BeginAndRun()->reason == "0 output tensors, expected 2");
  CHECK(Python(R"({"op":"done","result":0,"outputs":[1]})").BeginAndRun()->verdict ==
        v1::VERDICT_WRONG_SHAPE);
  const auto fault = [&](const std::string& place) {
    Bench bench = Python(Done(Place(memory), place));
    REQUIRE_FALSE(bench.BeginAndRun());
    Fault found;
    CHECK(bench.jail->Output(0, found).ok());
    CHECK_FALSE(bench.jail->Output(1, found).ok());
    return found;
  };
  CHECK(fault("7").reason == "an output was not described");
  CHECK(fault(Place(memory, "[2,2]", "[2,1]")).verdict == v1::VERDICT_WRONG_SHAPE);
  CHECK(fault(Place(memory, "4")).verdict == v1::VERDICT_WRONG_SHAPE);
  const Fault dtype = fault(Place(memory, "[4]", "[1]", R"("code":2,"bits":64,"dtype":"torch.float64")"));
  CHECK(dtype.verdict == v1::VERDICT_WRONG_DTYPE);
  CHECK(dtype.reason == "output 1 has dtype torch.float64, expected float32");
}

TEST_CASE("a Python output is read where it can be, and nowhere else") {
  const uint64_t memory = Puppets().memory();
  const auto fault = [&](const std::string& place) {
    Bench bench = Python(Done(place, Place(memory)));
    REQUIRE_FALSE(bench.BeginAndRun());
    Fault found;
    CHECK_FALSE(bench.jail->Output(0, found).ok());
    return found;
  };
  for (const std::string& place :
       {Place(8), Place(uint64_t{1} << 62), Place(memory, "[4]", "[-1]"), Place(memory, "[4]", "[1,1]"),
        Place(memory, "[4]", "[268435456]"), Place(memory, "[4]", "\"1\"")}) {
    INFO(place);
    CHECK(fault(place).reason == "output 0 lies in no readable memory");
  }
  const Fault expanded = fault(Place(memory, "[4]", "[0]"));
  CHECK(expanded.verdict == v1::VERDICT_HACK);
  CHECK(expanded.hack_family == kUnmaterialisedFamily);
}

TEST_CASE("buffers outlive the process that had them") {
  Bench bench = Native("");
  REQUIRE_FALSE(bench.Begin());
  const pid_t pid = bench.jail->process().pid();
  const Buffers buffers = bench.jail->TakeBuffers();
  CHECK(kill(pid, 0) == -1);
  CHECK(buffers.outputs.size() == 2);
  CHECK(buffers.inputs->Read(0, 0) == bench.inputs);
}

}  // namespace
}  // namespace warpsmith
