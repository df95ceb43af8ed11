// A whole lane on a GPU, rehearsed: referee, oracle, reference and jails are the real processes, the driver is that of
// tests/support/fake_cuda, over memory files. Candidates are native programs whose "kernels" are loops.
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "core/base/check.h"
#include "core/base/file.h"
#include "reward_service/measure/referee.h"
#include "reward_service/measure/reference_form.h"
#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/referee_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(120);
constexpr char kRight[] =
    "for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }";

// What the driver is told, for all processes that have it by its name.
class Driver {
 public:
  Driver() {
    setenv("LD_LIBRARY_PATH", FakeCudaFolder().c_str(), /*overwrite=*/1);
    setenv("FAKE_CUDA", script_.c_str(), /*overwrite=*/1);
    Say("");
  }
  void Say(const std::string& script) const { WS_CHECK(WriteFileAtomically(script_, script).ok()); }

 private:
  const TemporaryDirectory folder_;
  const std::string script_ = folder_.path() / "script";
};

Driver& TestDriver() {
  static Driver driver;
  return driver;
}

struct Lane {
  Lane() {
    TestDriver();
    const auto gpus = FindGpus();
    WS_CHECK(gpus.ok() && gpus->size() == 1) << gpus.status().ToString();
    RefereeOptions options;
    options.lane_cores = {static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1};
    options.share_directory = ShareWithFakeGpu(ShareDirectory(), folder.path());
    options.gpu_uuid = gpus->front().uuid;
    auto started = Referee::Start(options);
    WS_CHECK(started.ok()) << started.status().ToString();
    referee = *std::move(started);
  }

  TemporaryDirectory folder;
  std::unique_ptr<Referee> referee;
};

Referee& GpuReferee() {
  static Lane lane;
  return *lane.referee;
}

// With a stream behind the outputs, which a native program for a GPU is given.
std::string Source(const std::string& statements) {
  std::string source = CandidateBody(statements);
  const std::string end = "DLTensor* const* outputs)";
  return source.replace(source.find(end), end.size(), "DLTensor* const* outputs, void* stream)");
}

JudgeRequest Request() {
  JudgeRequest request;
  request.task = TestTask("scaled_relu_square");
  request.limits.call_seconds_max = 1;
  request.timing.num_instances_min = 2;
  request.timing.num_instances_max = 3;
  return request;
}

absl::StatusOr<v1::Measurement> Judge(const std::string& statements, JudgeRequest request) {
  const UniqueFd library = CompileCandidate(Source(statements));
  request.library_fd = library.get();
  return GpuReferee().Judge(request, absl::Now() + kPatience + FormsTimeMax(request.timing.baselines));
}

absl::StatusOr<v1::Measurement> Judge(const std::string& statements, bool verify_only) {
  JudgeRequest request = Request();
  request.verify_only = verify_only;
  return Judge(statements, request);
}

v1::Grade GradeOf(const std::string& statements, bool verify_only = true) {
  const absl::StatusOr<v1::Measurement> measurement = Judge(statements, verify_only);
  REQUIRE(measurement.ok());
  return measurement->grade();
}

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

}  // namespace
}  // namespace warpsmith
