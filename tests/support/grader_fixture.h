// A grader over a compiler and a referee that do what a test says.
#ifndef WARPSMITH_TESTS_SUPPORT_GRADER_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_GRADER_FIXTURE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/memory_file.h"
#include "reward_service/grading/grader.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {

inline constexpr absl::Duration kPatience = absl::Seconds(20);
inline const ServiceAbilities kTestMachine{.devices = {{v1::DEVICE_CPU, "test machine"}}};

inline std::shared_ptr<const PreparedRequest> Prepared(const std::string& id, const std::string& source,
                                                       const std::string& formula = "") {
  v1::GradeRequest request;
  request.set_request_id(id);
  request.set_formula(formula);
  request.mutable_task()->set_id("task");
  request.mutable_task()->set_reference_source("class Model: pass");
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_candidate()->set_answer("```cpp\n" + source + "\n```");
  const absl::StatusOr<PreparedRequest> prepared = PrepareRequest(request, kTestMachine);
  REQUIRE(prepared.ok());
  return std::make_shared<const PreparedRequest>(*prepared);
}

// Collects one answer.
struct AwaitedGrade {
  absl::Notification arrived;
  absl::StatusOr<v1::Grade> grade = absl::UnknownError("no answer yet");

  GradeDone Done() {
    return [this](absl::StatusOr<v1::Grade> result) {
      grade = std::move(result);
      arrived.Notify();  // a second answer would abort here
    };
  }
  absl::StatusOr<v1::Grade> Wait() {
    REQUIRE(arrived.WaitForNotificationWithTimeout(kPatience));
    return grade;
  }
};

struct GraderBench {
  FakeRefereeScript script;
  std::atomic<int> num_compiled{0};
  CompileStage::CompileNative compile = [](const PreparedRequest&, const std::atomic<bool>&) {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
    return absl::StatusOr<CompiledProgram>(program);
  };
  std::unique_ptr<CompileStage> compile_stage;
  std::unique_ptr<Grader> grader;

  Grader* Start(GraderOptions options = {}) {
    const auto counted = [this](const PreparedRequest& prepared, const std::atomic<bool>& cancelled) {
      ++num_compiled;
      return compile(prepared, cancelled);
    };
    compile_stage = std::make_unique<CompileStage>("test compiler", 1 << 16, counted, nullptr);
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    lanes.push_back(
        std::make_unique<JudgeStage>(JudgeStageOptions{}, std::make_unique<FakeReferee>(&script)));
    grader = std::make_unique<Grader>(options, compile_stage.get(), std::move(lanes));
    return grader.get();
  }
};

inline v1::Grade GradeOf(Grader* grader, const std::shared_ptr<const PreparedRequest>& prepared) {
  AwaitedGrade answer;
  grader->Submit(prepared, answer.Done());
  const absl::StatusOr<v1::Grade> grade = answer.Wait();
  REQUIRE(grade.ok());
  return *grade;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_GRADER_FIXTURE_H_
