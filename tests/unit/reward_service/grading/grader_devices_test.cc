// The grader with lanes of several devices.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/catch.h"
#include "tests/support/grader_fixture.h"

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

  static absl::StatusOr<CompiledProgram> CompileNothing(v1::CandidateLanguage, std::string_view,
                                                        const std::atomic<bool>&) {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemfd("library", "bytes"));
    return program;
  }

  static std::shared_ptr<const PreparedRequest> For(v1::Device device, const std::string& id) {
    v1::GradeRequest request;
    request.set_request_id(id);
    request.mutable_task()->set_reference_source("class Model: pass");
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
