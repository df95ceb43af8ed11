// The grader with lanes of several devices.
#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/base/memory_file.h"
#include "tests/support/catch.h"
#include "tests/support/grader_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const ServiceAbilities kBoth{.devices = {{v1::DEVICE_CPU, "cpu"}, {v1::DEVICE_CUDA, "gpu"}}};

// A lane of each device. Programs are C++ for the CPU and CUDA for the GPU.
struct TwoDevices {
  TwoDevices() {
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    for (auto& [device, script] : scripts) {
      lanes.push_back(std::make_unique<JudgeStage>(JudgeStageOptions{.device = device},
                                                   std::make_unique<FakeReferee>(&script)));
    }
    grader = std::make_unique<Grader>(GraderOptions{}, &compile, std::move(lanes));
  }

  static absl::StatusOr<CompiledProgram> CompileNothing(const PreparedRequest&, const std::atomic<bool>&) {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
    return program;
  }

  static std::shared_ptr<const PreparedRequest> For(v1::Device device, const std::string& id,
                                                    const std::string& task = "") {
    v1::GradeRequest request;
    request.set_request_id(id);
    request.mutable_task()->set_reference_source("class Model: pass  # " + task);
    request.mutable_candidate()->set_language(device == v1::DEVICE_CUDA ? v1::CANDIDATE_LANGUAGE_CUDA
                                                                        : v1::CANDIDATE_LANGUAGE_CPP);
    request.mutable_candidate()->set_source("int " + id + ";");
    return std::make_shared<const PreparedRequest>(*PrepareRequest(request, kBoth));
  }

  std::map<v1::Device, FakeRefereeScript> scripts = [] {
    std::map<v1::Device, FakeRefereeScript> none;
    none[v1::DEVICE_CPU];
    none[v1::DEVICE_CUDA];
    return none;
  }();
  CompileStage compile{"test compiler", 1 << 16, CompileNothing, nullptr};
  std::unique_ptr<Grader> grader;
};

TEST_CASE("a program is judged on a lane of its device") {
  TwoDevices bench;
  for (const char* id : {"a", "b", "c"}) {
    CHECK(GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, id)).verdict() == v1::VERDICT_CORRECT);
  }
  CHECK(bench.scripts[v1::DEVICE_CUDA].num_judged == 3);
  CHECK(GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CPU, "d")).verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.scripts[v1::DEVICE_CPU].num_judged == 1);
}

TEST_CASE("what waits for one device holds up nothing for another, and all of it is counted") {
  TwoDevices bench;
  absl::Notification begun, go;
  bench.scripts[v1::DEVICE_CUDA].judge = [&](const JudgeRequest&) {
    if (!begun.HasBeenNotified()) begun.Notify();
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  AwaitedGrade first, second;
  bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, "a"), first.Done());
  REQUIRE(begun.WaitForNotificationWithTimeout(kPatience));
  bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, "b"), second.Done());
  // There is one compile worker: "b" has left it before "c" is taken.
  CHECK(GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CPU, "c")).verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.grader->backlog().num_requests == 2);
  CHECK(bench.grader->backlog().num_to_judge == 1);
  go.Notify();
  CHECK(first.Wait().ok());
  CHECK(second.Wait().ok());
}

// Lanes of one device.
struct Lanes {
  // With `lease_directory` the device of each has a lease there, named by the lane's number.
  explicit Lanes(size_t number, const std::filesystem::path& lease_directory = {}) : scripts(number) {
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    for (FakeRefereeScript& script : scripts) {
      std::optional<DeviceLease> lease;
      if (!lease_directory.empty()) lease = *DeviceLease::Open(absl::StrCat(lanes.size()), lease_directory);
      lanes.push_back(std::make_unique<JudgeStage>(JudgeStageOptions{.device = v1::DEVICE_CUDA},
                                                   std::make_unique<FakeReferee>(&script), std::move(lease)));
    }
    grader = std::make_unique<Grader>(GraderOptions{.revival_pause = absl::Milliseconds(1)}, &compile,
                                      std::move(lanes));
  }

  int num_lost() const { return grader->backlog().num_lanes_lost; }
  bool AwaitLost(int number) const {
    for (const absl::Time end = absl::Now() + kPatience; num_lost() != number;
         absl::SleepFor(absl::Milliseconds(1)))
      if (absl::Now() > end) return false;
    return true;
  }

  std::vector<FakeRefereeScript> scripts;
  CompileStage compile{"test compiler", 1 << 16, TwoDevices::CompileNothing, nullptr};
  std::unique_ptr<Grader> grader;
};

absl::StatusOr<v1::Measurement> Dies(const JudgeRequest&) {
  return absl::UnavailableError("the GPU is gone");
}

TEST_CASE("a lane that is lost leaves its work to another, and serves again when its referee starts") {
  Lanes bench(2);
  std::atomic<bool> is_gone{true};
  FakeRefereeScript& broken = bench.scripts[0];
  broken.judge = [&](const JudgeRequest& request) {
    return is_gone ? Dies(request) : absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  broken.revive = [&] { return is_gone ? absl::UnavailableError("no device") : absl::OkStatus(); };
  // Either lane may be the first to take one: what the broken one takes is answered all the same.
  for (int i = 0; broken.num_judged == 0 && i < 1000; ++i) {
    const std::string name = absl::StrCat("a", i);
    const auto request = TwoDevices::For(v1::DEVICE_CUDA, name, /*task=*/name);
    CHECK(GradeOf(bench.grader.get(), request).verdict() == v1::VERDICT_CORRECT);
  }
  REQUIRE(broken.num_judged == 1);
  REQUIRE(bench.AwaitLost(1));
  CHECK(GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, "b")).verdict() == v1::VERDICT_CORRECT);
  CHECK(broken.num_judged == 1);
  is_gone = false;
  CHECK(bench.AwaitLost(0));
}

TEST_CASE(
    "a candidate that ends lanes for good costs two of them at most, and the last lane of a device stays") {
  Lanes bench(3);
  for (FakeRefereeScript& script : bench.scripts) {
    script.judge = Dies;
    script.revive = [] { return absl::UnavailableError("no device"); };
  }
  const v1::Grade grade = GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, "a"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("the GPU is gone"));
  CHECK(bench.AwaitLost(2));
  CHECK(bench.scripts[0].num_judged + bench.scripts[1].num_judged + bench.scripts[2].num_judged == 2);
  CHECK(GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, "b")).verdict() ==
        v1::VERDICT_UNSCORABLE);
  CHECK(bench.num_lost() == 2);
}

TEST_CASE("the last lane is tried as often as candidates are judged, also where its referee did not start") {
  Lanes bench(1);
  FakeRefereeScript& script = bench.scripts[0];
  script.judge = [&](const JudgeRequest& request) {
    return script.num_judged < 3 ? Dies(request) : absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  script.revive = [] { return absl::UnavailableError("no device"); };
  const auto request = TwoDevices::For(v1::DEVICE_CUDA, "a");
  CHECK(GradeOf(bench.grader.get(), request).verdict() == v1::VERDICT_CORRECT);
  CHECK(script.num_judged == 3);
  CHECK(bench.num_lost() == 0);
  script.judge = Dies;
  const v1::Grade grade = GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, "b"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("the referee failed 3 times"));
}

// A trainer's hold on the device of a lane.
struct Owner {
  Owner(const TemporaryDirectory& directory, int lane)
      : lease(*DeviceLease::Open(absl::StrCat(lane), directory.path())),
        next(open((directory.path() / absl::StrCat("warpsmith-", lane, ".next")).c_str(), O_RDWR)) {}
  void Take() { held = std::make_unique<DeviceLease::Held>(*lease.Take(absl::Now() + kPatience)); }
  void GiveUp() { held = nullptr; }
  bool NobodyIsNext() const {
    if (flock(next.get(), LOCK_EX | LOCK_NB) != 0) return false;
    flock(next.get(), LOCK_UN);
    return true;
  }

  DeviceLease lease;
  const UniqueFd next;
  std::unique_ptr<DeviceLease::Held> held;
};

TEST_CASE("while another process uses a lane's device, other lanes do the work") {
  const TemporaryDirectory directory;
  Owner owner(directory, 0);
  owner.Take();
  Lanes bench(2, directory.path());
  for (const char* id : {"a", "b", "c", "d"}) {
    CHECK(GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, id)).verdict() == v1::VERDICT_CORRECT);
  }
  CHECK(bench.scripts[0].num_judged == 0);
  CHECK(bench.scripts[1].num_judged == 4);
}

TEST_CASE("what waits for a device in use is judged when its user gives it up, and ends with the service") {
  const TemporaryDirectory directory;
  Owner owner(directory, 0);
  owner.Take();
  Lanes bench(1, directory.path());
  AwaitedGrade waiting, late;
  bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, "a"), waiting.Done());
  absl::SleepFor(absl::Milliseconds(50));
  CHECK(bench.scripts[0].num_judged == 0);
  owner.GiveUp();
  CHECK(waiting.Wait().ok());
  owner.Take();
  bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, "b"), late.Done());
  bench.grader->Drain(absl::ZeroDuration());
  CHECK(absl::IsUnavailable(late.Wait().status()));
  CHECK(bench.scripts[0].num_judged == 1);
}

TEST_CASE("who asks for a device has it after the judgement in hand, however many wait") {
  const TemporaryDirectory directory;
  Owner owner(directory, 0);
  Lanes bench(1, directory.path());
  absl::Notification begun, go;
  bench.scripts[0].judge = [&](const JudgeRequest&) {
    if (!begun.HasBeenNotified()) begun.Notify();
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  std::vector<AwaitedGrade> grades(5);
  for (size_t i = 0; i < grades.size(); ++i)
    bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, absl::StrCat("a", i)), grades[i].Done());
  REQUIRE(begun.WaitForNotificationWithTimeout(kPatience));
  std::thread asking([&] { owner.Take(); });
  while (owner.NobodyIsNext()) absl::SleepFor(absl::Milliseconds(1));
  go.Notify();
  asking.join();
  CHECK(bench.scripts[0].num_judged == 1);
  absl::SleepFor(absl::Milliseconds(50));
  CHECK(bench.scripts[0].num_judged == 1);
  owner.GiveUp();
  for (AwaitedGrade& grade : grades) CHECK(grade.Wait().ok());
}

TEST_CASE("a referee that dies is started again under the hold that its judgement has, whoever waits") {
  const TemporaryDirectory directory;
  Owner owner(directory, 0);
  Lanes bench(1, directory.path());
  absl::Notification begun, go;
  FakeRefereeScript& script = bench.scripts[0];
  script.judge = [&](const JudgeRequest& request) {
    if (script.num_judged == 1) {
      begun.Notify();
      go.WaitForNotification();
      return Dies(request);
    }
    absl::StatusOr<DeviceLease> another = DeviceLease::Open("0", directory.path());
    CHECK(absl::IsDeadlineExceeded(another->Take(absl::Now()).status()));
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  std::atomic<bool> owner_has_it = false;
  std::atomic<int> num_revived = 0;
  script.revive = [&] {
    ++num_revived;
    CHECK_FALSE(owner_has_it);
    return absl::OkStatus();
  };
  AwaitedGrade grade;
  bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, "a"), grade.Done());
  REQUIRE(begun.WaitForNotificationWithTimeout(kPatience));
  std::thread asking([&] {
    owner.Take();
    owner_has_it = true;
  });
  while (owner.NobodyIsNext()) absl::SleepFor(absl::Milliseconds(1));
  go.Notify();
  CHECK(grade.Wait()->verdict() == v1::VERDICT_CORRECT);
  CHECK(script.num_judged == 2);
  CHECK(num_revived == 1);
  asking.join();
}

TEST_CASE("draining does not wait for a lane that is lost") {
  Lanes bench(2);
  for (FakeRefereeScript& script : bench.scripts) {
    script.judge = Dies;
    script.revive = [] { return absl::UnavailableError("no device"); };
  }
  GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, "a"));
  REQUIRE(bench.AwaitLost(1));
  bench.grader->Drain(absl::ZeroDuration());
  CHECK(bench.num_lost() == 1);
}

TEST_CASE("draining ends the lanes of every device") {
  TwoDevices bench;
  GradeOf(bench.grader.get(), TwoDevices::For(v1::DEVICE_CUDA, "a"));
  bench.grader->Drain(absl::ZeroDuration());
  AwaitedGrade late;
  bench.grader->Submit(TwoDevices::For(v1::DEVICE_CUDA, "b"), late.Done());
  CHECK(absl::IsUnavailable(late.Wait().status()));
}

}  // namespace
}  // namespace warpsmith
