// Memory of a jail that a program should not write, or has not written.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "reward_service/referee/process/guards.h"
#include "reward_service/referee/process/jail.h"
#include "tests/fuzz/puppet.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int kNumElements = 4;
constexpr int kCallsMax = 2;  // in three rooms

const PuppetMaster& Puppets() {
  static const auto* const puppets = new PuppetMaster;
  return *puppets;
}

// int32[4] in and out.
TaskLayout Layout() {
  const nlohmann::json tensor = {{"code", 0}, {"bits", 32}, {"shape", {kNumElements}}};
  return *MakeLayout({{"inputs", {tensor}}, {"parameters", nlohmann::json::array()}, {"outputs", {tensor}}},
                     1 << 20);
}

// A native program that is loaded and makes no call.
struct Bench {
  Bench() : layout(Layout()) {
    Buffers buffers = *MakeBuffers(HostStore(), layout, CandidateKind::kNative, kCallsMax);
    for (const auto& buffer : buffers.outputs) outputs.push_back(const_cast<char*>(buffer->Read(0, 0)));
    jail = std::make_unique<Jail>(Puppets().Make("{\"op\":\"ready\"}\n\n{}\n"), std::move(buffers), layout,
                                  JudgeLimits{});
    draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
    REQUIRE_FALSE(*jail->Begin({.kind = CandidateKind::kNative, .library_fd = 0, .source_fd = 0}, nullptr));
  }
  // The output of the call that was loaded.
  const int32_t* Output() {
    Fault fault;
    return static_cast<const int32_t*>(*jail->Output(0, fault));
  }

  const TaskLayout layout;
  std::vector<char*> outputs;  // of both slots
  Draw draw;
  std::unique_ptr<Jail> jail;
};

TEST_CASE("an integer that is not written is no -1, and not the same in each run") {
  Bench bench;
  std::set<int32_t> seen;
  for (int call = 0; call < 40; ++call) {
    bench.jail->Load(bench.draw);
    const int32_t* const values = bench.Output();
    CHECK(std::all_of(values, values + kNumElements, [&](int32_t value) { return value == values[0]; }));
    seen.insert(values[0]);
  }
  CHECK(seen.size() > 1);
  CHECK(*seen.rbegin() < -1);
}

TEST_CASE("a room that a run leaves out is as it was, or the program wrote there") {
  Bench bench;
  bench.jail->Load(bench.draw);
  CHECK_FALSE(bench.jail->CheckIdleRooms());
  const char* const used = reinterpret_cast<const char*>(bench.Output());
  for (char* const slot : bench.outputs) {
    for (int room = 0; room <= kCallsMax; ++room) {
      char* const output = slot + room * bench.layout.output_buffer_bytes + bench.layout.outputs[0].offset;
      if (output != used) *output = 1;
    }
  }
  const auto fault = bench.jail->CheckIdleRooms();
  REQUIRE(fault);
  CHECK(fault->reason == "outputs were written of a call that was not made");
}

TEST_CASE("what lies around the outputs is guarded") {
  Bench bench;
  bench.jail->Load(bench.draw);
  CHECK_FALSE(bench.jail->CheckBuffers(bench.draw));
  int64_t num_bytes = 0;
  ForEachGuard(bench.layout, [&](int64_t start, int64_t end) { num_bytes += end - start; });
  CHECK(num_bytes + bench.layout.outputs[0].num_bytes == bench.layout.output_buffer_bytes);
  char* const behind = const_cast<char*>(reinterpret_cast<const char*>(bench.Output() + kNumElements));
  *behind = 1;
  const auto fault = bench.jail->CheckBuffers(bench.draw);
  REQUIRE(fault);
  CHECK(fault->out_of_bounds);
}

}  // namespace
}  // namespace warpsmith
