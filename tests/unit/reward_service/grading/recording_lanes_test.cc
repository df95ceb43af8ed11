#include "reward_service/grading/recording_lanes.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {
namespace {

using Records = absl::StatusOr<std::vector<ExtensionRecord>>;

// Three lanes, of which the last is for a GPU, and how often each was asked.
struct Bench {
  Bench() {
    for (size_t i = 0; i < scripts.size(); ++i) {
      scripts[i].record = [this, i](const std::string&) {
        ++num_asked[i];
        return answers[i];
      };
      const v1::Device device = i < 2 ? v1::DEVICE_CPU : v1::DEVICE_CUDA;
      lanes.push_back(std::make_unique<JudgeStage>(JudgeStageOptions{.device = device, .num_attempts_max = 1},
                                                   std::make_unique<FakeReferee>(&scripts[i])));
    }
  }
  Route Record(v1::Device device = v1::DEVICE_CPU, std::string task_key = "") {
    if (task_key.empty()) task_key = absl::StrCat("task ", num_tasks++);
    PreparedRequest prepared;
    prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
    prepared.source = "load_inline";
    prepared.device = device;
    prepared.task_key = task_key;
    flight = std::make_unique<Flight>();
    flight->prepared = std::make_shared<const PreparedRequest>(prepared);
    return recording.Record(flight.get(), absl::UnixEpoch());
  }

  std::array<FakeRefereeScript, 3> scripts;
  std::array<Records, 3> answers = {Records(std::vector<ExtensionRecord>(1)),
                                    Records(std::vector<ExtensionRecord>(1)),
                                    Records(std::vector<ExtensionRecord>(1))};
  std::array<int, 3> num_asked = {};
  std::vector<std::unique_ptr<JudgeStage>> lanes;
  TaskLanes task_lanes;
  int num_tasks = 0;
  RecordingLanes recording{lanes, &task_lanes};
  std::unique_ptr<Flight> flight;
};

TEST_CASE("the lanes of a device are asked in turn, and those of others never") {
  Bench bench;
  for (int i = 0; i < 4; ++i) CHECK(bench.Record() == Route::kCompile);
  CHECK(bench.num_asked == std::array<int, 3>{2, 2, 0});
  CHECK(bench.Record(v1::DEVICE_CUDA) == Route::kCompile);
  CHECK(bench.num_asked[2] == 1);
}

TEST_CASE("programs of one task are recorded on the lane that has it ready") {
  Bench bench;
  for (int i = 0; i < 3; ++i) CHECK(bench.Record(v1::DEVICE_CPU, "a task") == Route::kCompile);
  CHECK(bench.num_asked == std::array<int, 3>{3, 0, 0});
  CHECK(bench.Record(v1::DEVICE_CPU, "another") == Route::kCompile);
  CHECK(bench.num_asked == std::array<int, 3>{3, 1, 0});
}

TEST_CASE(
    "where a referee fails another lane is asked, once, and the judgement may be passed on all the same") {
  Bench bench;
  bench.answers[0] = absl::UnavailableError("dead");
  for (int i = 0; i < 2; ++i) {
    CHECK(bench.Record() == Route::kCompile);
    CHECK_FALSE(WantsRecording(*bench.flight));
    CHECK_FALSE(bench.flight->passed_on);
  }
  CHECK(bench.num_asked == std::array<int, 3>{1, 2, 0});
  bench.answers[1] = absl::UnavailableError("dead");
  CHECK(bench.Record() == Route::kFinish);
  CHECK(bench.flight->measurement.grade().verdict() == v1::VERDICT_UNSCORABLE);
  CHECK(bench.num_asked == std::array<int, 3>{2, 3, 0});
}

TEST_CASE("a program at fault is told by the first lane") {
  Bench bench;
  bench.answers.fill(absl::InvalidArgumentError("NameError"));
  CHECK(bench.Record() == Route::kFinish);
  CHECK(bench.flight->measurement.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(bench.num_asked == std::array<int, 3>{1, 0, 0});
}

TEST_CASE("a lane that is lost is asked only where all are") {
  Bench bench;
  for (FakeRefereeScript& script : bench.scripts)
    script.revive = [] { return absl::UnavailableError("gone"); };
  CHECK_FALSE(bench.lanes[0]->Revive());
  for (int i = 0; i < 3; ++i) CHECK(bench.Record() == Route::kCompile);
  CHECK(bench.num_asked == std::array<int, 3>{0, 3, 0});
  CHECK_FALSE(bench.lanes[1]->Revive());
  for (int i = 0; i < 2; ++i) CHECK(bench.Record() == Route::kCompile);
  CHECK(bench.num_asked == std::array<int, 3>{1, 4, 0});
}

}  // namespace
}  // namespace warpsmith
