// The grader with a lane that judges several candidates at once.
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/memory_file.h"
#include "tests/support/catch.h"
#include "tests/support/grader_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const ServiceAbilities kGpu{.devices = {{v1::DEVICE_CUDA, "gpu"}}};

absl::StatusOr<CompiledProgram> CompileNothing(const PreparedRequest&, const std::atomic<bool>&) {
  CompiledProgram program;
  program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
  return program;
}

// One lane that judges several at once. With `lease_directory` its device has a lease there.
struct WideLane {
  explicit WideLane(const std::filesystem::path& lease_directory = {}) {
    std::optional<DeviceLease> lease;
    if (!lease_directory.empty()) lease = *DeviceLease::Open("0", lease_directory);
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    lanes.push_back(
        std::make_unique<JudgeStage>(JudgeStageOptions{.device = v1::DEVICE_CUDA, .num_at_once = 3},
                                     std::make_unique<FakeReferee>(&script), std::move(lease)));
    grader = std::make_unique<Grader>(GraderOptions{}, &compile, std::move(lanes));
  }
  // Of a task by this name.
  static std::shared_ptr<const PreparedRequest> For(const std::string& task, const std::string& id) {
    v1::GradeRequest request;
    request.set_request_id(id);
    request.mutable_task()->set_reference_source("class Model: pass  # " + task);
    request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CUDA);
    request.mutable_candidate()->set_source("int " + id + ";");
    return std::make_shared<const PreparedRequest>(*PrepareRequest(request, kGpu));
  }
  bool AwaitAtOnce(int number) const {
    for (const absl::Time end = absl::Now() + kPatience; num_at_once != number;
         absl::SleepFor(absl::Milliseconds(1)))
      if (absl::Now() > end) return false;
    return true;
  }

  FakeRefereeScript script;
  std::atomic<int> num_at_once{0};
  CompileStage compile{"test compiler", 1 << 16, CompileNothing, nullptr};
  std::unique_ptr<Grader> grader;
};

TEST_CASE("a lane judges as many at once as it can, and those of other tasks first") {
  WideLane bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    ++bench.num_at_once;
    go.WaitForNotification();
    --bench.num_at_once;
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  std::vector<AwaitedGrade> grades(5);
  const std::vector<std::pair<const char*, const char*>> requests = {
      {"one", "a"}, {"two", "b"}, {"two", "c"}, {"one", "d"}, {"three", "e"}};
  for (size_t i = 0; i < requests.size(); ++i) {
    bench.grader->Submit(WideLane::For(requests[i].first, requests[i].second), grades[i].Done());
    if (i == 0) REQUIRE(bench.AwaitAtOnce(1));
    if (i == 1) REQUIRE(bench.AwaitAtOnce(2));
  }
  REQUIRE(bench.AwaitAtOnce(3));
  absl::SleepFor(absl::Milliseconds(50));
  CHECK(bench.num_at_once == 3);
  go.Notify();
  for (AwaitedGrade& grade : grades) CHECK(grade.Wait().ok());
  CHECK(bench.script.num_judged == 5);
}

TEST_CASE("whoever ends a referee in which others are judged is alone when it is judged again") {
  WideLane bench;
  std::atomic<int> num_beside{0};
  bench.script.judge = [&](const JudgeRequest& request) -> absl::StatusOr<v1::Measurement> {
    const bool kills = request.task.reference_source.find("kills") != std::string::npos;
    const int number = ++bench.num_at_once;
    if (kills && bench.script.num_judged > 3 && number > 1) ++num_beside;
    absl::SleepFor(absl::Milliseconds(20));
    if (kills && bench.num_at_once > 1 && bench.script.num_judged > 3) ++num_beside;
    --bench.num_at_once;
    if (kills || bench.script.num_judged <= 3) return absl::UnavailableError("the referee has ended");
    return TwiceAsFast();
  };
  std::vector<AwaitedGrade> grades(3);
  const std::vector<std::string> tasks = {"one", "kills", "two"};
  for (size_t i = 0; i < tasks.size(); ++i)
    bench.grader->Submit(WideLane::For(tasks[i], tasks[i]), grades[i].Done());
  CHECK(grades[0].Wait()->verdict() == v1::VERDICT_CORRECT);
  CHECK(grades[1].Wait()->verdict() == v1::VERDICT_UNSCORABLE);
  CHECK(grades[2].Wait()->verdict() == v1::VERDICT_CORRECT);
  CHECK(num_beside == 0);
}

TEST_CASE("a lane of several judgements that is lost rests at once, though no work follows") {
  std::vector<FakeRefereeScript> scripts(2);
  CompileStage compile{"test compiler", 1 << 16, CompileNothing, nullptr};
  std::atomic<int> num_gone = 0;
  std::vector<std::unique_ptr<JudgeStage>> lanes;
  for (FakeRefereeScript& script : scripts) {
    script.judge = [&](const JudgeRequest&) -> absl::StatusOr<v1::Measurement> {
      if (num_gone++ == 0) return absl::UnavailableError("the GPU is gone");
      return TwiceAsFast();
    };
    script.revive = [] { return absl::UnavailableError("no device"); };
    lanes.push_back(
        std::make_unique<JudgeStage>(JudgeStageOptions{.device = v1::DEVICE_CUDA, .num_at_once = 3},
                                     std::make_unique<FakeReferee>(&script)));
  }
  Grader grader(GraderOptions{}, &compile, std::move(lanes));
  CHECK(GradeOf(&grader, WideLane::For("one", "a")).verdict() == v1::VERDICT_CORRECT);
  for (const absl::Time end = absl::Now() + kPatience; grader.backlog().num_lanes_lost == 0;) {
    REQUIRE(absl::Now() < end);
    absl::SleepFor(absl::Milliseconds(1));
  }
  CHECK(GradeOf(&grader, WideLane::For("two", "b")).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("an idle GPU leaves a task to the one that has it ready until that has taken long") {
  std::vector<FakeRefereeScript> scripts(2);
  CompileStage compile{"test compiler", 1 << 16, CompileNothing, nullptr};
  std::atomic<int> num_begun = 0;
  absl::Notification first_begun, first_go, second_go;
  std::vector<std::unique_ptr<JudgeStage>> lanes;
  for (FakeRefereeScript& script : scripts) {
    script.judge = [&](const JudgeRequest&) -> absl::StatusOr<v1::Measurement> {
      const int number = ++num_begun;
      if (number == 1) {
        first_begun.Notify();
        first_go.WaitForNotification();
      }
      if (number == 2) second_go.WaitForNotification();
      return TwiceAsFast();
    };
    lanes.push_back(std::make_unique<JudgeStage>(JudgeStageOptions{.device = v1::DEVICE_CUDA},
                                                 std::make_unique<FakeReferee>(&script)));
  }
  Grader grader(GraderOptions{}, &compile, std::move(lanes));
  std::vector<AwaitedGrade> grades(3);
  for (size_t i = 0; i < grades.size(); ++i)
    grader.Submit(WideLane::For("one", std::string(1, static_cast<char>('a' + i))), grades[i].Done());
  REQUIRE(first_begun.WaitForNotificationWithTimeout(kPatience));
  absl::SleepFor(absl::Milliseconds(100));
  CHECK(num_begun == 1);
  const absl::Time first_ends = absl::Now();
  first_go.Notify();
  CHECK(grades[2].Wait().ok());                        // by the other one: the second is being judged
  CHECK(absl::Now() - first_ends < absl::Seconds(8));  // without a first result it is left for ten
  second_go.Notify();
  for (size_t i = 0; i < 2; ++i) CHECK(grades[i].Wait().ok());
  CHECK(num_begun == 3);
  CHECK(scripts[0].num_judged * scripts[1].num_judged == 2);
}

TEST_CASE("judgements that overlap hold a device together, and give it up for a process that waits") {
  const TemporaryDirectory directory;
  WideLane bench(directory.path());
  absl::Notification first_go;
  bench.script.judge = [&](const JudgeRequest& request) {
    ++bench.num_at_once;
    if (request.task.reference_source.find("one") != std::string::npos) first_go.WaitForNotification();
    --bench.num_at_once;
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  AwaitedGrade first, third;
  bench.grader->Submit(WideLane::For("one", "a"), first.Done());
  REQUIRE(bench.AwaitAtOnce(1));
  CHECK(GradeOf(bench.grader.get(), WideLane::For("two", "b")).verdict() == v1::VERDICT_CORRECT);
  DeviceLease other = *DeviceLease::Open("0", directory.path());
  CHECK(absl::IsDeadlineExceeded(other.Take(absl::Now()).status()));  // the first has it
  std::atomic<bool> other_holds{false};
  std::thread waiting([&] {
    const auto held = other.Take(absl::Now() + kPatience);
    other_holds = held.ok();
    absl::SleepFor(absl::Milliseconds(100));
  });
  absl::SleepFor(absl::Milliseconds(50));
  bench.grader->Submit(WideLane::For("three", "c"), third.Done());
  absl::SleepFor(absl::Milliseconds(50));
  CHECK(bench.script.num_judged == 2);  // it does not join
  first_go.Notify();
  waiting.join();
  CHECK(other_holds);
  CHECK(first.Wait().ok());
  CHECK(third.Wait().ok());
}

}  // namespace
}  // namespace warpsmith
