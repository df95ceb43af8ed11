// A reception before a grader whose referees do what the test says: what stands behind every door.
#ifndef WARPSMITH_TESTS_SUPPORT_RECEPTION_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_RECEPTION_FIXTURE_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/memory_file.h"
#include "reward_service/server/reception.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {

struct ReceptionFixture {
  // As many compile workers as lanes.
  explicit ReceptionFixture(int queue_capacity = 256, const std::vector<TenantOptions>& tenants = {},
                            int num_lanes = 1, const std::string& default_formula = "warpsmith-v3") {
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    for (int lane = 0; lane < num_lanes; ++lane) {
      lanes.push_back(
          std::make_unique<JudgeStage>(JudgeStageOptions{}, std::make_unique<FakeReferee>(&script)));
    }
    const auto observer = [this](const std::shared_ptr<const PreparedRequest>& prepared,
                                 const v1::Grade& grade) { ledger.Record(prepared, grade); };
    grader = std::make_unique<Grader>(
        GraderOptions{
            .num_compile_workers = num_lanes, .queue_capacity = queue_capacity, .observer = observer},
        &compile, std::move(lanes));
    absl::StatusOr<Tenants> loaded = Tenants::Load(tenants, queue_capacity);
    REQUIRE(loaded.ok());
    ReceptionOptions options;
    options.abilities.devices[v1::DEVICE_CPU] = "machine";
    options.capabilities.set_default_formula(default_formula);
    reception = std::make_unique<Reception>(options, *std::move(loaded), grader.get(), &ledger);
  }

  static absl::StatusOr<CompiledProgram> CompileNothing(const PreparedRequest&, const std::atomic<bool>&) {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
    return program;
  }

  FakeRefereeScript script;
  CompileStage compile{"test compiler", 1 << 16, CompileNothing, nullptr};
  Ledger ledger{int64_t{1} << 20};
  std::unique_ptr<Grader> grader;
  std::unique_ptr<Reception> reception;
};

// A native program on a task, in an answer's fence.
inline v1::GradeRequest NativeRequest(const std::string& id, const std::string& source) {
  v1::GradeRequest request;
  request.set_request_id(id);
  request.mutable_task()->set_id("task");
  request.mutable_task()->set_reference_source("class Model: pass");
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_candidate()->set_answer("```cpp\n" + source + "\n```");
  return request;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_RECEPTION_FIXTURE_H_
