#include "reward_service/referee/process/zygote.h"

#include <sys/stat.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/puppet_zygote.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr int64_t kMemoryBytes = int64_t{1} << 30;
const ChildRights kOpen{"python", kMemoryBytes, 10, 1};
const ChildRights kSealed{
    .role = "python", .memory_bytes_max = kMemoryBytes, .cpu_seconds_max = 10, .sealed = true};
const ChildRights kOracle{"oracle", kMemoryBytes, 20, 1};

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// What a puppet tells of itself.
nlohmann::json Told(ChildProcess& child) {
  REQUIRE(child.AwaitHello(Soon()).ok());
  const auto told = child.Ask({{"op", "tell"}}, {}, Soon());
  REQUIRE(told.ok());
  return told->fields;
}

// An interpreter that says this and ends with this code.
std::filesystem::path FakePython(const TemporaryDirectory& folder, const std::string& script) {
  const std::filesystem::path path = folder.path() / "python";
  WS_CHECK(WriteFileAtomically(path, "#!/bin/sh\n" + script).ok());
  WS_CHECK(chmod(path.c_str(), 0755) == 0);
  return path;
}

TEST_CASE("a forked child has the rights that were asked for, and says which code it may have") {
  const auto zygote = StartPuppets();
  CHECK(zygote->torch_version() == "puppet");
  CHECK(zygote->torch_cpu_capability() == "AVX2");
  const auto child = zygote->Fork(kSealed);
  REQUIRE(child.ok());
  const nlohmann::json told = Told(**child);
  CHECK(told["rights"]["sealed"] == true);
  CHECK(told["rights"]["role"] == "python");
  CHECK(told["rights"]["cpu_seconds_max"] == 10);
  CHECK(told["rights"]["memory_bytes_max"] == kMemoryBytes);
  CHECK(told["rights"]["address_bytes_max"] > kMemoryBytes);
  REQUIRE((*child)->Stop().ok());
  CHECK((*child)->CheckCode().ok());
}

TEST_CASE("children that live at the same time have uids of their own") {
  const auto zygote = StartPuppets();
  const auto first = zygote->Fork(kOpen);
  const auto second = zygote->Fork(kOpen);
  REQUIRE((first.ok() && second.ok()));
  CHECK(Told(**first)["rights"]["uid"] != Told(**second)["rights"]["uid"]);
}

TEST_CASE("a child with code that its zygote did not name is found out") {
  const auto zygote = StartPuppets({{"warm", {{"code", {{"/usr/lib/other.so", true}}}}}});
  const auto child = zygote->Fork(kSealed);
  REQUIRE(child.ok());
  REQUIRE((*child)->AwaitHello(Soon()).ok());
  REQUIRE((*child)->Stop().ok());
  CHECK(absl::IsFailedPrecondition((*child)->CheckCode()));
}

TEST_CASE("spares are awaited, and those that cannot be are ended") {
  const nlohmann::json refused = {{"hello python", {{"op", "failed"}, {"error", "no context"}}}};
  const auto zygote = StartPuppets({{"children", {{"1", refused}, {"3", {{"hello python", "silent"}}}}}});
  REQUIRE(zygote->ForkWithSpare(kOpen).ok());
  zygote->AwaitSpares(absl::Now() + absl::Seconds(1));
  for (const int number : {2, 4}) {
    const auto child = zygote->ForkWithSpare(kOpen, Zygote::Spares::kUsedUp);
    REQUIRE(child.ok());
    CHECK(Told(**child)["number"] == number);
  }
}

TEST_CASE("while spares end, others get their children") {
  const auto zygote = StartPuppets({{"answers", {{"hello", 5000}}}});
  REQUIRE(
      zygote->ForkWithSpare(kOpen).ok());  // three more are asked for, each of which is waited for a while
  std::atomic<bool> has_ended = false;
  std::thread ends([&] {
    (void)zygote->ForkWithoutSpares(kOpen);
    has_ended = true;
  });
  absl::SleepFor(absl::Milliseconds(100));
  CHECK(zygote->Fork(kOpen).ok());
  CHECK_FALSE(has_ended);
  ends.join();
}

TEST_CASE("one spare is awaited where some were asked for, and only of the same rights") {
  const auto zygote = StartPuppets({{"answers", {{"hello python", 150}}}});
  const auto took = [&](const ChildRights& rights) {
    const absl::Time begin = absl::Now();
    zygote->AwaitSpare(rights, Soon());
    return absl::Now() - begin;
  };
  CHECK(took(kOpen) < absl::Milliseconds(100));
  REQUIRE(zygote->ForkWithSpare(kOpen).ok());
  CHECK(took(kSealed) < absl::Milliseconds(100));
  (void)took(kOpen);
  const absl::Time begin = absl::Now();
  const auto child = zygote->ForkWithSpare(kOpen, Zygote::Spares::kUsedUp);
  REQUIRE(child.ok());
  REQUIRE((*child)->AwaitHello(Soon()).ok());
  CHECK(absl::Now() - begin < absl::Milliseconds(100));
}

TEST_CASE("whoever awaits spares does not wait for those that others ask for meanwhile") {
  const auto zygote = StartPuppets({{"answers", {{"hello python", 100}}}});
  std::atomic<bool> ends = false;
  std::thread others([&] {
    for (; !ends; absl::SleepFor(absl::Milliseconds(5))) (void)zygote->ForkWithSpare(kOpen);
  });
  absl::SleepFor(absl::Milliseconds(50));
  const absl::Time begin = absl::Now();
  zygote->AwaitSpares(begin + absl::Seconds(60));
  CHECK(absl::Now() - begin < absl::Seconds(20));
  ends = true;
  others.join();
}

TEST_CASE("who takes a child with a spare gets one that was asked for earlier") {
  const auto zygote = StartPuppets();
  const auto number = [&](const ChildRights& rights) {
    const auto child = zygote->ForkWithSpare(rights);
    REQUIRE(child.ok());
    return Told(**child)["number"].get<int>();
  };
  // Three are kept beside the one that is given, so each kind of rights begins with four forks.
  CHECK(number(kOpen) == 0);
  CHECK(number(kOpen) == 1);
  CHECK(number(kSealed) == 5);
  CHECK(number(kOpen) == 2);  // as those of three kinds are kept
  CHECK(number(kOracle) == 10);
  CHECK(number(kOpen) == 3);
  CHECK(number(kSealed) == 6);
  ChildRights fourth = kOpen;
  fourth.launch_queues = 2;
  CHECK(number(fourth) == 16);
  CHECK(number(kOracle) == 20);  // a fourth kind took the place of the one used longest ago
}

TEST_CASE("a child without rights to namespaces is a failure of the machine") {
  const auto zygote =
      StartPuppets({{"answers", {{"hello", {{"op", "failed"}, {"error", "unshare: not permitted"}}}}}});
  const auto child = zygote->Fork(kOpen);
  REQUIRE(child.ok());
  CHECK((*child)->AwaitHello(Soon()) ==
        absl::InternalError("a process could not be confined: unshare: not permitted"));
}

TEST_CASE("a zygote that fails to fork says so at a later fork") {
  const auto zygote =
      StartPuppets({{"answers", {{"fork", {{{"op", "failed"}, {"error", "fork: no memory"}}}}}}});
  const auto first = zygote->Fork(kOpen);
  REQUIRE(first.ok());
  REQUIRE((*first)->AwaitHello(Soon()).ok());
  absl::Status status;
  // The zygote's answer may come behind the child's hello.
  for (int fork = 0; fork < 100 && status.ok(); ++fork) {
    auto next = zygote->Fork(kOpen);
    status = next.status();
    if (next.ok()) REQUIRE((*next)->AwaitHello(Soon()).ok());
  }
  CHECK(status == absl::InternalError("a zygote failed: fork: no memory"));
}

TEST_CASE("a zygote that has died makes no more children") {
  const auto zygote = StartPuppets({{"answers", {{"fork", "end"}}}});
  const auto last = zygote->Fork(kOpen);
  REQUIRE(last.ok());
  REQUIRE((*last)->AwaitHello(Soon()).ok());
  absl::Status status;
  for (int fork = 0; fork < 100 && status.ok(); ++fork) {
    auto next = zygote->Fork(kOpen);
    status = next.status();
    if (next.ok()) CHECK_FALSE((*next)->AwaitHello(Soon()).ok());
  }
  CHECK(absl::IsUnavailable(status));
}

TEST_CASE("a zygote that dies while it warms up leaves its last words") {
  const auto zygote = TryStartPuppets({{"answers", {{"warm", "end"}}}, {"complaint", "no module torch"}});
  CHECK(absl::IsFailedPrecondition(zygote.status()));
  CHECK_THAT(std::string(zygote.status().message()), Catch::Contains("it said: no module torch"));
}

TEST_CASE("a zygote that does not say which code is permitted is none") {
  for (const nlohmann::json& code : {nlohmann::json(), nlohmann::json("all"), nlohmann::json::array()}) {
    CHECK_FALSE(TryStartPuppets({{"warm", {{"code", code}}}}).ok());
  }
}

TEST_CASE("a reference on scalar kernels is refused where the processor has better") {
#if defined(__x86_64__)
  const bool has_better = __builtin_cpu_supports("avx2") != 0;
  CHECK(TryStartPuppets({{"warm", {{"torch_cpu_capability", "DEFAULT"}}}}).ok() != has_better);
#endif
}

TEST_CASE("a machine without the program of native jails is told so") {
  const TemporaryDirectory folder;
  CHECK_FALSE(Zygote::StartNative(folder.path()).ok());
}

TEST_CASE("the folders that Python needs are those that a sandbox lacks") {
  const TemporaryDirectory folder;
  const auto folders =
      PythonFolders(FakePython(folder, "echo /opt/venv\necho /usr\necho /opt/venv/torch/..\n"));
  REQUIRE(folders.ok());
  CHECK(*folders == std::vector<std::filesystem::path>{"/opt/venv", "/opt/venv/"});
}

TEST_CASE("a Python without Torch is told by its own words") {
  const TemporaryDirectory folder;
  const auto folders = PythonFolders(FakePython(folder, "echo No module named torch\nexit 1\n"));
  CHECK(absl::IsFailedPrecondition(folders.status()));
  CHECK_THAT(std::string(folders.status().message()), Catch::Contains("No module named torch"));
}

}  // namespace
}  // namespace warpsmith
