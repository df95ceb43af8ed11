#include "reward_service/grading/stages.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

std::unique_ptr<Flight> PythonFlight(const std::string& source) {
  PreparedRequest prepared;
  prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  prepared.source = source;
  auto flight = std::make_unique<Flight>();
  flight->prepared = std::make_shared<const PreparedRequest>(prepared);
  return flight;
}

absl::StatusOr<CompiledProgram> CompileNothing(const ExtensionRecord&, const std::atomic<bool>&) {
  CompiledProgram program;
  program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
  return program;
}

TEST_CASE("a Python program that compiles nothing is judged at once") {
  FakeRefereeScript script;
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("class ModelNew: pass");
  CHECK(FirstRoute(*flight->prepared) == Route::kJudge);
  CHECK(stage.Run(flight.get()) == Route::kFinish);
  CHECK(flight->measurement.grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python program that names Triton is recorded where it runs on a GPU, and only there") {
  PreparedRequest prepared;
  prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  prepared.source = "import triton";
  prepared.device = v1::DEVICE_CUDA;
  CHECK(FirstRoute(prepared) == Route::kCompile);
  prepared.device = v1::DEVICE_CPU;
  CHECK(FirstRoute(prepared) == Route::kJudge);
}

TEST_CASE("a referee is told when another candidate of the task waits") {
  FakeRefereeScript script;
  bool another_follows = false;
  script.judge = [&](const JudgeRequest& request) {
    another_follows = request.another_follows;
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  for (const bool waits : {true, false}) {
    CHECK(stage.Run(PythonFlight("class ModelNew: pass").get(), {.another_follows = waits}) ==
          Route::kFinish);
    CHECK(another_follows == waits);
  }
}

TEST_CASE("a referee is told which libraries a program's task allows, of either kind of program") {
  FakeRefereeScript script;
  JudgeRequest told;
  script.judge = [&](const JudgeRequest& request) {
    told = request;
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  for (const auto language : {v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON, v1::CANDIDATE_LANGUAGE_CPP}) {
    for (const bool with_blas : {true, false}) {
      const auto flight = PythonFlight("");
      PreparedRequest prepared = *flight->prepared;
      prepared.request.mutable_candidate()->set_language(language);
      prepared.with_blas = with_blas;
      prepared.with_torch = !with_blas;
      flight->prepared = std::make_shared<const PreparedRequest>(prepared);
      flight->library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
      CHECK(stage.Run(flight.get()) == Route::kFinish);
      CHECK(told.with_blas == with_blas);
      CHECK(told.with_torch == !with_blas);
    }
  }
}

TEST_CASE("extensions are recorded, compiled, and handed to the jail in their order") {
  FakeRefereeScript script;
  script.record = [](const std::string&) {
    return absl::StatusOr<std::vector<ExtensionRecord>>(std::vector<ExtensionRecord>(2));
  };
  size_t num_libraries = 0;
  script.judge = [&](const JudgeRequest& request) {
    num_libraries = request.extension_fds.size();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  JudgeStage judge({}, std::make_unique<FakeReferee>(&script));
  const CompileStage compile("test compiler", 1 << 16, nullptr, CompileNothing);
  const auto flight = PythonFlight("load_inline(...)");
  CHECK(FirstRoute(*flight->prepared) == Route::kCompile);
  CHECK(WantsRecording(*flight));
  CHECK(judge.Record(flight.get(), {}) == Route::kCompile);
  CHECK_FALSE(WantsRecording(*flight));
  CHECK(compile.Run(flight.get()) == Route::kJudge);
  CHECK(judge.Run(flight.get()) == Route::kFinish);
  CHECK(num_libraries == 2);
  CHECK(flight->measurement.grade().compile().succeeded());
}

TEST_CASE("what is measured joins what earlier stages found, and both waits for the lane count") {
  FakeRefereeScript script;
  script.judge = [](const JudgeRequest&) {
    v1::Measurement measurement = TwiceAsFast();
    measurement.mutable_grade()->mutable_cost()->set_lane_wait_seconds(0.5);
    measurement.mutable_grade()->mutable_cost()->set_verify_seconds(0.25);
    measurement.mutable_advice_facts()->set_wrong_at_scale_only(true);
    return absl::StatusOr<v1::Measurement>(measurement);
  };
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("class ModelNew: pass");
  flight->queued_since = absl::Now();
  v1::Grade& grade = *flight->measurement.mutable_grade();
  grade.mutable_compile()->set_succeeded(true);
  grade.mutable_cost()->set_compile_seconds(2);
  grade.mutable_cost()->set_lane_wait_seconds(1000);
  CHECK(stage.Run(flight.get()) == Route::kFinish);
  CHECK(grade.compile().succeeded());
  CHECK(grade.timing().speedup_low() == 1.9);
  CHECK(grade.cost().compile_seconds() == 2);
  CHECK(grade.cost().verify_seconds() == 0.25);
  CHECK(grade.cost().lane_wait_seconds() >= 1000.5);
  CHECK(grade.environment().lane_cores() == "1");
  CHECK(flight->measurement.advice_facts().wrong_at_scale_only());
}

// Sixteen of them, the most that there can be, would have sixteen limits.
TEST_CASE("extensions that take long to build share one limit, and the last of them its own") {
  absl::Time now;
  int num_compiled = 0;
  const auto slow = [&](const ExtensionRecord& record, const std::atomic<bool>& cancelled) {
    ++num_compiled;
    now += absl::Seconds(100);
    return CompileNothing(record, cancelled);
  };
  const CompileStage stage("test compiler", 1 << 16, nullptr, slow, [&] { return now; });
  const auto flight = PythonFlight("load_inline(...)");
  flight->extensions.resize(16, {.name = "e"});
  CHECK(stage.Run(flight.get()) == Route::kFinish);
  CHECK(num_compiled == 2);
  CHECK(flight->measurement.grade().verdict() == v1::VERDICT_COMPILE_ERROR);
  CHECK(flight->measurement.grade().compile().diagnostics() ==
        "error: the calls of load_inline before \"e\" took over 180 s to build\n");
  const auto two = PythonFlight("load_inline(...)");
  two->extensions.resize(2, {.name = "e"});
  CHECK(stage.Run(two.get()) == Route::kJudge);
}

TEST_CASE("a program that only speaks of extensions is judged without one") {
  FakeRefereeScript script;
  const JudgeStage judge({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("load_inline");
  CHECK(judge.Record(flight.get(), {}) == Route::kJudge);
  CHECK_FALSE(WantsRecording(*flight));
}

TEST_CASE("what was waited for before a recording is time in the queue, and the recording is none of it") {
  FakeRefereeScript script;
  const JudgeStage judge({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("load_inline");
  flight->queued_since = absl::Now() - absl::Hours(1);
  judge.Record(flight.get(), {});
  CHECK(flight->measurement.grade().cost().queue_seconds() >= 3600);
  CHECK(absl::Now() - flight->queued_since < absl::Hours(1));
}

TEST_CASE("a program that fails before it asks for an extension is a runtime error") {
  FakeRefereeScript script;
  script.record = [](const std::string&) {
    return absl::StatusOr<std::vector<ExtensionRecord>>(absl::InvalidArgumentError("NameError: x"));
  };
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("load_inline");
  CHECK(stage.Record(flight.get(), {}) == Route::kFinish);
  CHECK(flight->measurement.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(flight->measurement.grade().verdict_reason() == "NameError: x");
}

TEST_CASE("a task at fault is so for a program that compiles something, too") {
  FakeRefereeScript script;
  script.record = [](const std::string&) {
    return absl::StatusOr<std::vector<ExtensionRecord>>(absl::FailedPreconditionError("no Model"));
  };
  script.judge = [](const JudgeRequest&) {
    v1::Measurement measurement;
    measurement.mutable_grade()->set_verdict(v1::VERDICT_INVALID_TASK);
    return absl::StatusOr<v1::Measurement>(measurement);
  };
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("load_inline");
  CHECK(stage.Record(flight.get(), {}) == Route::kJudge);
  CHECK(stage.Run(flight.get()) == Route::kFinish);
  CHECK(flight->measurement.grade().verdict() == v1::VERDICT_INVALID_TASK);
}

TEST_CASE("a referee that cannot record passes the program on, and the second one makes it UNSCORABLE") {
  FakeRefereeScript script;
  script.record = [](const std::string&) {
    return absl::StatusOr<std::vector<ExtensionRecord>>(absl::UnavailableError("dead"));
  };
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("load_inline");
  // Where another lane can be asked it is.
  CHECK(stage.Record(flight.get(), {.others_serve = true}) == Route::kCompile);
  CHECK(WantsRecording(*flight));
  CHECK(stage.Record(flight.get(), {.others_serve = false}) == Route::kFinish);
  CHECK(flight->measurement.grade().verdict() == v1::VERDICT_UNSCORABLE);
}

// A referee that never has an answer, and notes until when it was asked to have one.
class SlowReferee final : public Referee {
 public:
  explicit SlowReferee(std::vector<absl::Duration>* patience) : patience_(patience) {}

  absl::StatusOr<v1::Measurement> Judge(const JudgeRequest&, absl::Time deadline) override {
    return TimeOut(deadline);
  }
  absl::StatusOr<std::vector<ExtensionRecord>> RecordExtensions(const TaskSource&, const std::string&,
                                                                absl::Time deadline) override {
    return TimeOut(deadline);
  }
  absl::Status Revive() override { return absl::OkStatus(); }
  absl::Status Calibrate() override { return absl::OkStatus(); }
  void Prefetch(const TaskSource&) override {}
  RefereeFacts facts() const override { return facts_; }

 private:
  absl::Status TimeOut(absl::Time deadline) {
    patience_->push_back(deadline - absl::Now());
    return absl::DeadlineExceededError("late");
  }

  std::vector<absl::Duration>* const patience_;
  RefereeFacts facts_;
};

TEST_CASE("recording and judging are tried so often, and waited for so long each time") {
  for (const bool records : {true, false}) {
    std::vector<absl::Duration> patience;
    JudgeStage stage({.num_attempts_max = 3, .deadline = absl::Seconds(60)},
                     std::make_unique<SlowReferee>(&patience));
    const auto flight = PythonFlight("load_inline");
    CHECK((records ? stage.Record(flight.get(), {}) : stage.Run(flight.get())) == Route::kFinish);
    CHECK(flight->measurement.grade().verdict() == v1::VERDICT_UNSCORABLE);
    CHECK(patience.size() == 3);
    for (const absl::Duration wait : patience) CHECK(wait <= absl::Seconds(60));
  }
}

TEST_CASE("a native program is compiled in its language, by a compiler that tells its name") {
  const auto compile = [](const PreparedRequest& prepared,
                          const std::atomic<bool>&) -> absl::StatusOr<CompiledProgram> {
    CHECK(prepared.source == "program");
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
    if (prepared.request.candidate().language() == v1::CANDIDATE_LANGUAGE_CUDA) program.compiler = "nvcc 13";
    return program;
  };
  const CompileStage stage("g++ 12", 10, compile, nullptr);
  for (const auto& [language, compiler] :
       {std::pair(v1::CANDIDATE_LANGUAGE_CUDA, "nvcc 13"), std::pair(v1::CANDIDATE_LANGUAGE_CPP, "g++ 12")}) {
    PreparedRequest prepared;
    prepared.request.mutable_candidate()->set_language(language);
    prepared.source = "program";
    Flight flight;
    flight.prepared = std::make_shared<const PreparedRequest>(prepared);
    CHECK(stage.Run(&flight) == Route::kJudge);
    CHECK(flight.measurement.grade().compile().compiler() == compiler);
  }
}

TEST_CASE("the kernels of a program's machine code are in its grade") {
  const auto compile = [](const PreparedRequest&,
                          const std::atomic<bool>&) -> absl::StatusOr<CompiledProgram> {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
    program.cubins = {{"sm_80", *ReadFile("tests/data/cubin/loads.sm_80.cubin")}, {"sm_90a", "no ELF file"}};
    return program;
  };
  const CompileStage stage("g++ 12", 10, compile, nullptr);
  PreparedRequest prepared;
  prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CUDA);
  Flight flight;
  flight.prepared = std::make_shared<const PreparedRequest>(prepared);
  CHECK(stage.Run(&flight) == Route::kJudge);
  CHECK(flight.measurement.grade().compile().architectures_size() == 2);
  CHECK(flight.measurement.grade().compile().kernels_size() == 4);
}

TEST_CASE("a grade has the kernels of all extensions") {
  const auto compile = [](const ExtensionRecord& record,
                          const std::atomic<bool>&) -> absl::StatusOr<CompiledProgram> {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile("bytes"));
    program.headers = record.name;
    program.cubins = {{"sm_80", *ReadFile("tests/data/cubin/" + record.name + ".sm_80.cubin")}};
    return program;
  };
  const CompileStage stage("g++ 12", 10, nullptr, compile);
  const auto flight = PythonFlight("load_inline(...)");
  flight->extensions.resize(2);
  flight->extensions[0].name = "loads";
  flight->extensions[1].name = "shared";
  CHECK(stage.Run(flight.get()) == Route::kJudge);
  const v1::Compile& told = flight->measurement.grade().compile();
  CHECK(told.kernels_size() == 4 + 5);
  CHECK(told.architectures_size() == 1);
  CHECK(told.headers() == "shared");
}

TEST_CASE("a program over the limit is refused without a compiler") {
  const CompileStage stage("test compiler", 10, nullptr, nullptr);
  PreparedRequest prepared;
  prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  prepared.source = std::string(11, 'x');
  Flight flight;
  flight.prepared = std::make_shared<const PreparedRequest>(prepared);
  CHECK(stage.Run(&flight) == Route::kFinish);
  CHECK(flight.measurement.grade().verdict() == v1::VERDICT_COMPILE_ERROR);
}

TEST_CASE("a lane that is lost stays so until its referee starts, or judges what was begun since") {
  FakeRefereeScript script;
  absl::Notification go, has_begun;
  std::atomic<bool> dies = true;
  script.judge = [&](const JudgeRequest& request) -> absl::StatusOr<v1::Measurement> {
    if (request.source == "slow") {
      has_begun.Notify();
      go.WaitForNotification();
      return TwiceAsFast();
    }
    if (dies) return absl::UnavailableError("the GPU is gone");
    return TwiceAsFast();
  };
  script.revive = [] { return absl::UnavailableError("no device"); };
  JudgeStage stage({.num_attempts_max = 3, .num_at_once = 2}, std::make_unique<FakeReferee>(&script));
  const auto slow = PythonFlight("slow"), other = PythonFlight("other"), later = PythonFlight("later");
  std::thread begun_before([&] { CHECK(stage.Run(slow.get()) == Route::kFinish); });
  has_begun.WaitForNotification();
  CHECK(stage.Run(other.get(), {.others_serve = true}) == Route::kJudge);
  CHECK(stage.is_lost());
  go.Notify();
  begun_before.join();
  CHECK(stage.is_lost());
  dies = false;
  CHECK(stage.Run(later.get()) == Route::kFinish);
  CHECK_FALSE(stage.is_lost());
}

TEST_CASE("a recording starts a referee anew only while no other process has the device") {
  const TemporaryDirectory directory;
  FakeRefereeScript script;
  std::atomic<int> num_revived = 0;
  script.record = [&](const std::string&) -> absl::StatusOr<std::vector<ExtensionRecord>> {
    if (num_revived == 0) return absl::UnavailableError("no referee runs");
    return std::vector<ExtensionRecord>();
  };
  script.revive = [&] {
    ++num_revived;
    return absl::OkStatus();
  };
  JudgeStage stage({.num_attempts_max = 3, .deadline = absl::Milliseconds(300)},
                   std::make_unique<FakeReferee>(&script), *DeviceLease::Open("0", directory.path()));
  DeviceLease other = *DeviceLease::Open("0", directory.path());
  const auto flight = PythonFlight("load_inline"), again = PythonFlight("load_inline");
  {
    const auto held = other.Take(absl::Now());
    REQUIRE(held.ok());
    CHECK(stage.Record(flight.get(), {}) == Route::kFinish);
    CHECK(flight->measurement.grade().verdict() == v1::VERDICT_UNSCORABLE);
    CHECK(num_revived == 0);
  }
  CHECK(stage.Record(again.get(), {}) == Route::kJudge);
  CHECK(num_revived == 1);
}

TEST_CASE("a cancelled flight is judged by nobody") {
  FakeRefereeScript script;
  JudgeStage stage({}, std::make_unique<FakeReferee>(&script));
  const auto flight = PythonFlight("class ModelNew: pass");
  flight->cancelled = true;
  CHECK(stage.Run(flight.get()) == Route::kDrop);
  CHECK(script.num_judged == 0);
}

}  // namespace
}  // namespace warpsmith
