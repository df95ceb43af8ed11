#include "reward_service/referee/process/launched_kernels.h"

#include <unistd.h>

#include <limits>
#include <string>
#include <vector>

#include "reward_service/referee/process/jail.h"
#include "tests/support/catch.h"
#include "tests/support/forked_child.h"

namespace warpsmith {
namespace {

TEST_CASE("kernels are read with all that is told of them, the longest first") {
  const v1::Profile profile = ReadLaunches({{"op", "profiled"},
                                            {"num_launches", 4},
                                            {"kernels",
                                             {{{"name", "fill"}, {"us", 1}},
                                              {{"name", "softmax_rows<float, 4>"},
                                               {"grid", {4096, 1, 1}},
                                               {"block", {256, 2, 1}},
                                               {"registers", 40},
                                               {"shared_bytes", 2048},
                                               {"num_launches", 2},
                                               {"us", 131.5}}}}});
  CHECK(profile.num_launches() == 4);
  REQUIRE(profile.kernels_size() == 2);
  const v1::KernelRun& longest = profile.kernels(0);
  CHECK(longest.name() == "softmax_rows<float, 4>");
  CHECK(std::vector<int>(longest.grid().begin(), longest.grid().end()) == std::vector<int>{4096, 1, 1});
  CHECK(std::vector<int>(longest.block().begin(), longest.block().end()) == std::vector<int>{256, 2, 1});
  CHECK(longest.registers() == 40);
  CHECK(longest.shared_bytes() == 2048);
  CHECK(longest.num_launches() == 2);
  CHECK(longest.us() == 131.5);
  CHECK(profile.kernels(1).name() == "fill");
  CHECK(profile.kernels(1).num_launches() == 1);
}

TEST_CASE("what is no kernel, or none that a GPU could run, is left out of a list or bounded in it") {
  const nlohmann::json huge = std::numeric_limits<uint64_t>::max();
  const v1::Profile profile = ReadLaunches({{"kernels",
                                             {7,
                                              nullptr,
                                              "kernel",
                                              nlohmann::json::array(),
                                              {{"name", 5},
                                               {"grid", {1, 2}},
                                               {"block", {-1, "x", huge}},
                                               {"registers", huge},
                                               {"shared_bytes", -1},
                                               {"num_launches", -3},
                                               {"us", "long"}}}},
                                            {"num_launches", "many"}});
  REQUIRE(profile.kernels_size() == 1);
  const v1::KernelRun& kernel = profile.kernels(0);
  CHECK(kernel.name().empty());
  CHECK(kernel.grid_size() == 0);
  CHECK(std::vector<int>(kernel.block().begin(), kernel.block().end()) == std::vector<int>{0, 0, 0});
  CHECK(kernel.registers() == 0);
  CHECK(kernel.shared_bytes() == 0);
  CHECK(kernel.us() == 0);
  CHECK(profile.num_launches() == 1);
  CHECK(ReadLaunches({{"kernels", nlohmann::json::array({1})}}).kernels_size() == 0);
  CHECK(ReadLaunches({{"kernels", "all"}}).num_launches() == 0);
}

TEST_CASE("a list that is too long is not there, and launches do not overflow") {
  nlohmann::json kernels = nlohmann::json::array();
  for (int i = 0; i < 32; ++i) kernels.push_back({{"name", "k"}, {"num_launches", 2'000'000'000}});
  CHECK(ReadLaunches({{"kernels", kernels}}).num_launches() == std::numeric_limits<int32_t>::max());
  kernels.push_back({{"name", "k"}});
  CHECK(ReadLaunches({{"kernels", kernels}}).kernels_size() == 0);
}

TEST_CASE("names are escaped and cut") {
  const auto name = [](const std::string& told) {
    return ReadLaunches({{"kernels", nlohmann::json::array({{{"name", told}}})}}).kernels(0).name();
  };
  CHECK(name("two\nlines\x1b[2J") == "two\\nlines\\x1b[2J");
  CHECK(name(std::string(1000, 'k')).size() == 128);
}

// Of a process that begins, answers a call, and does `life` when it is asked for what it launches.
template <typename Life>
absl::StatusOr<v1::Profile> ProfileOf(const Life& life) {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {4}}};
  const TaskLayout layout = *MakeLayout(
      {{"inputs", {tensor}}, {"parameters", nlohmann::json::array()}, {"outputs", {tensor}}}, 1 << 20);
  auto child = ForkChild([&life](int socket, int) {
    AwaitPacket(socket);
    (void)SendPacket(socket, {{"op", "ready"}});
    AwaitPacket(socket);
    (void)SendPacket(socket, {{"op", "done"}, {"result", 0}});
    AwaitPacket(socket);
    life(socket);
  });
  Jail jail(std::move(child), *MakeBuffers(HostStore(), layout, CandidateKind::kNative), layout,
            {.cpu_seconds_max = 3, .call_seconds_max = 0.5});
  Draw draw;
  draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
  REQUIRE_FALSE(*jail.Begin({.library_fd = 0}, nullptr));
  jail.Load(draw);
  REQUIRE_FALSE(jail.Run());
  return jail.Profile(draw);
}

TEST_CASE("what a process says that it launched is read, and any other end of that call is a status") {
  const auto says = [](nlohmann::json answer) {
    return ProfileOf([&](int socket) {
      (void)SendPacket(socket, answer);
      pause();
    });
  };
  const auto told = says({{"op", "profiled"}, {"num_launches", 3}, {"kernels", {{{"name", "softmax"}}}}});
  REQUIRE(told.ok());
  CHECK(told->num_launches() == 3);
  REQUIRE(told->kernels_size() == 1);
  CHECK(told->kernels(0).name() == "softmax");
  CHECK(says({{"op", "failed"}, {"error", "no\nCUPTI"}}).status().message() == "no\\nCUPTI");
  CHECK_FALSE(says({{"op", "done"}, {"result", 0}}).ok());
  CHECK_FALSE(says({{"op", "crash"}, {"signal", 11}}).ok());
  CHECK_FALSE(ProfileOf([](int) { _exit(0); }).ok());
  CHECK(absl::IsDeadlineExceeded(ProfileOf([](int) { pause(); }).status()));
}

}  // namespace
}  // namespace warpsmith
