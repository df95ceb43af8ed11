// A whole lane on a GPU, rehearsed: referee, oracle, reference and jails are the real processes, the driver is that of
// tests/support/fake_cuda, over memory files. Candidates are native programs whose "kernels" are loops, and Python's.
#include "tests/integration/fake_gpu_lane.h"

#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a right program is timed in batches beside the reference on the same GPU") {
  const v1::Grade grade = GradeOf(kRight, /*verify_only=*/false);
  INFO(grade.ShortDebugString());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().libraries_withheld());
  CHECK(grade.timing().speedup() > 0);
  CHECK(grade.timing().calls_per_batch() > 1);
  CHECK(grade.timing().reference().num_calls() > 0);
  CHECK(grade.profile().num_samples() == 0);
  CHECK(grade.profile().gigabytes_per_second() > 0);
  REQUIRE(GpuReferee().facts().gpu.has_value());
  CHECK(GpuReferee().facts().gpu->name == "Fake GPU 0");
}

// The grade of a right program for a task with these statements in its reference, beside another form of that.
v1::Grade GradeBeside(const std::string& form, const std::string& statements) {
  JudgeRequest request = Request();
  request.task = MakeTask(
      "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        " + statements +
      "\n        return torch.relu(2 * x + 1) ** 2\n\ndef get_inputs():\n"
      "    return [torch.randn(256, 1024)]\n\ndef get_init_inputs():\n    return []\n");
  request.timing.baselines = {form};
  const absl::StatusOr<v1::Measurement> measurement = Judge(kRight, request);
  INFO(measurement.status());
  REQUIRE(measurement.ok());
  REQUIRE(measurement->grade().verdict() == v1::VERDICT_CORRECT);
  REQUIRE(measurement->grade().timing().baselines_size() == 1);
  return measurement->grade();
}

TEST_CASE(
    "a CUDA graph of the reference is timed beside it once a task, and candidates are compared with it") {
  const v1::Timing first = GradeBeside("cuda_graph", "pass").timing();
  const v1::Baseline& graph = first.baselines(0);
  INFO(graph.ShortDebugString());
  CHECK(graph.name() == "cuda graph");
  CHECK(graph.unavailable().empty());
  CHECK(graph.us() > 0);
  const v1::Timing second = GradeBeside("cuda_graph", "pass").timing();
  CHECK(second.baselines(0).us() == graph.us());
  CHECK(second.baselines(0).speedup() / second.speedup() == Approx(graph.speedup() / first.speedup()));
}

TEST_CASE("a reference that waits for the GPU has no CUDA graph, is told so, and is not at fault") {
  const v1::Baseline graph =
      GradeBeside("cuda_graph", "x = x + 0 * x.abs().max().item()").timing().baselines(0);
  CHECK_THAT(graph.unavailable(), Catch::Contains("operation not permitted when stream is capturing"));
  CHECK(graph.us() == 0);
  CHECK(graph.speedup() == 0);
}

// It compiles for the host, where the tensors of this GPU are: as much of compilers is confined as on a real one.
TEST_CASE("what torch.compile makes of the reference is compiled in its own jail, and timed as well") {
  const v1::Baseline compiled = GradeBeside("torch_compile", "pass").timing().baselines(0);
  INFO(compiled.ShortDebugString());
  CHECK(compiled.name() == "torch.compile");
  CHECK(compiled.unavailable().empty());
  CHECK(compiled.us() > 0);
  CHECK(compiled.speedup() > 0);
}

TEST_CASE("a reference that does not compile is told so, and is not at fault") {
  const std::string waits =
      "if 'torch._inductor.compile_fx' in __import__('sys').modules: raise NotImplementedError('not this "
      "one')";
  const v1::Baseline compiled = GradeBeside("torch_compile", waits).timing().baselines(0);
  CHECK_THAT(compiled.unavailable(), Catch::Contains("not this one"));
}

TEST_CASE("what is wrong, missing, or written elsewhere is told") {
  CHECK(GradeOf("for (int64_t i = 0; i < n; ++i) y[i] = x[i];").verdict() == v1::VERDICT_INCORRECT);
  CHECK(GradeOf("").verdict() == v1::VERDICT_INCORRECT);
  const v1::Grade stray = GradeOf(std::string(kRight) + "y[n] = 1;");
  CHECK(stray.verdict() == v1::VERDICT_INCORRECT);
  CHECK(GradeOf("return 7;").verdict() == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("inputs are to be read only, and a fault or an endless call costs its candidate alone") {
  CHECK(GradeOf(std::string(kRight) + "x[0] = 1;").verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(GradeOf("*(volatile int*)nullptr = 1;").verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(GradeOf("for (volatile int i = 0;; i = 0) {}").verdict() == v1::VERDICT_TIMEOUT);
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

// Statements after which the driver in the candidate's own jail does what a line of a script says.
std::string DriverSays(const std::string& line) {
  return "FILE* script = std::fopen(\"/tmp/script\", \"w\"); std::fputs(\"" + line +
         "\\n\", script); std::fclose(script); setenv(\"FAKE_CUDA\", \"/tmp/script\", 1);\n";
}

TEST_CASE("what the driver says of a candidate's kernels is the candidate's: a fault, or no end") {
  for (const char* error : {"700", "716", "719"}) {  // an illegal address, a misaligned one, a failed launch
    const v1::Grade grade = GradeOf(DriverSays(std::string("fail cuCtxSynchronize ") + error) + kRight);
    CHECK(grade.verdict() == v1::VERDICT_RUNTIME_ERROR);
    CHECK_THAT(grade.verdict_reason(), Catch::Contains("on the GPU: cuCtxSynchronize"));
  }
  CHECK(GradeOf(DriverSays("late cuCtxSynchronize 3600000") + kRight).verdict() == v1::VERDICT_TIMEOUT);
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a fault that is told late is a fault where the GPU rests meanwhile") {
  const std::string faults =
      DriverSays("late cuCtxSynchronize 2300\\nfail cuCtxSynchronize 716") + kRight;  // a call has 1 s
  CHECK(GradeOf(faults).verdict() == v1::VERDICT_TIMEOUT);
  TestDriver().Say("rest 500 1000\n");
  const v1::Grade grade = GradeOf(faults);
  CHECK(grade.verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("on the GPU: cuCtxSynchronize"));
  CHECK(GradeOf(DriverSays("late cuCtxSynchronize 3600000") + kRight).verdict() == v1::VERDICT_TIMEOUT);
  TestDriver().Say("");
}

TEST_CASE("a flood of output is no fault of a right program") {
  const absl::StatusOr<v1::Measurement> measurement = Judge(
      "for (int i = 0; i < 40000; ++i) std::printf(\"%d: all is well, and this is said often\\n\", i);\n" +
          std::string(kRight),
      /*verify_only=*/true);
  REQUIRE(measurement.ok());
  CHECK(measurement->grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE(
    "a GPU that fails is nobody's fault: the referee ends, and another one starts when the GPU is there "
    "again") {
  REQUIRE(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
  TestDriver().Say("fail cuCtxSynchronize 719\n");
  const absl::StatusOr<v1::Measurement> broken = Judge(kRight, /*verify_only=*/true);
  CHECK_FALSE(broken.ok());
  TestDriver().Say("gpus 0\n");
  CHECK_FALSE(GpuReferee().Revive().ok());
  CHECK_FALSE(Judge(kRight, /*verify_only=*/true).ok());
  TestDriver().Say("");
  CHECK(GpuReferee().Revive().ok());
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a referee waits for the memory that another one's candidates had") {
  REQUIRE(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
  TestDriver().Say("fail cuCtxSynchronize 719\n");
  CHECK_FALSE(Judge(kRight, /*verify_only=*/true).ok());
  TestDriver().Say("fail cuDevicePrimaryCtxRetain 2\n");  // CUDA_ERROR_OUT_OF_MEMORY
  std::thread release([] {
    absl::SleepFor(absl::Seconds(2));
    TestDriver().Say("");
  });
  CHECK(GpuReferee().Revive().ok());
  release.join();
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("draws that a GPU has no room for lie in the host's memory, and a candidate is timed with them") {
  REQUIRE(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
  TestDriver().Say("fail cuCtxSynchronize 719\n");
  CHECK_FALSE(Judge(kRight, /*verify_only=*/true).ok());
  // Beside two contexts there is room for a call's tensors, 21 MB, some 18 times.
  TestDriver().Say("memory 3000\n");
  CHECK(GpuReferee().Revive().ok());
  TestDriver().Say("memory 3000\nfail cuMemAllocAsync 2\n");
  JudgeRequest request = Request();
  request.task = MakeTask(
      "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
      "        return torch.relu(2 * x + 1) ** 2\n\ndef get_inputs():\n"
      "    return [torch.randn(2600, 1000)]\n\ndef get_init_inputs():\n    return []\n");
  const absl::StatusOr<v1::Measurement> right = Judge(kRight, request);
  INFO(right.status());
  REQUIRE(right.ok());
  CHECK(right->grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(right->grade().timing().speedup() > 0);
  const absl::StatusOr<v1::Measurement> wrong = Judge(std::string(kRight) + "y[n - 1] += 1;", request);
  REQUIRE(wrong.ok());
  CHECK_THAT(wrong->grade().verdict_reason(), Catch::Contains("1 of 2600000 elements wrong"));
  TestDriver().Say("fail cuCtxSynchronize 719\n");
  CHECK_FALSE(Judge(kRight, /*verify_only=*/true).ok());
  TestDriver().Say("");
  CHECK(GpuReferee().Revive().ok());
}

// Of a task whose reference has these statements in front. Number `addend` makes it another task.
TaskSource TaskOf(int addend, const std::string& statements = "pass") {
  return MakeTask("import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        " +
                  statements + "\n        return torch.relu(2 * x + 1) ** 2 + 0 * " + std::to_string(addend) +
                  "\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n\ndef get_init_inputs():\n    "
                  "return []\n");
}

TEST_CASE("a driver that answers late costs time, and one that does not answer its referee") {
  TestDriver().Say("late cuMemCreate 300\nlate cuMemcpyDtoH_v2 20\n");
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
  // As often as a candidate is judged; what hangs makes the draws of a task that nobody has judged yet.
  TestDriver().Say("late cuCtxSynchronize 3600000\n");
  JudgeRequest request = Request();
  request.task = TaskOf(/*addend=*/100);
  for (int attempt = 0; attempt < 3; ++attempt)
    CHECK(absl::IsDeadlineExceeded(Judge(kRight, request, absl::Seconds(1)).status()));
  TestDriver().Say("");
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("tasks are made and programs recorded beside each other, and each is judged by itself") {
  constexpr int kNumTasks = 6;
  const std::string program =
      "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n";
  std::vector<absl::StatusCode> recorded(kNumTasks);
  std::vector<std::thread> recordings;
  for (int i = 0; i < kNumTasks; ++i) {
    recordings.emplace_back([&, i] {
      const std::string fault = i == 3 ? "raise ValueError('not defined')" : "pass";
      recorded[static_cast<size_t>(i)] =
          GpuReferee().RecordExtensions(TaskOf(i, fault), program, absl::Now() + kPatience).status().code();
    });
  }
  const auto verdict_of = [](int task, const std::string& statements) {
    JudgeRequest request = Request();
    request.task = TaskOf(task);
    request.timing.num_instances_max = 2;
    const absl::StatusOr<v1::Measurement> measurement = Judge(statements, request);
    return measurement.ok() ? measurement->grade().verdict() : v1::VERDICT_UNSPECIFIED;
  };
  CHECK(verdict_of(0, kRight) == v1::VERDICT_CORRECT);
  CHECK(verdict_of(1, "") == v1::VERDICT_INCORRECT);
  CHECK(verdict_of(5, kRight) == v1::VERDICT_CORRECT);
  for (std::thread& recording : recordings) recording.join();
  for (int i = 0; i < kNumTasks; ++i) {
    INFO(i);
    CHECK(recorded[static_cast<size_t>(i)] ==
          (i == 3 ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk));
  }
}

TEST_CASE("a reference that refuses some inputs is judged on those that it takes, also beside others") {
  JudgeRequest request = Request();
  request.task = TaskOf(7, "assert x.abs().max() < 8 and x.dtype == torch.float32");
  request.verify_only = true;
  const absl::StatusOr<v1::Measurement> measurement = Judge(kRight, request);
  REQUIRE(measurement.ok());
  CHECK(measurement->grade().verdict() == v1::VERDICT_CORRECT);
}

}  // namespace
}  // namespace warpsmith
