// A whole lane on a GPU, rehearsed: referee, oracle, reference and jails are the real processes, the driver is that of
// tests/support/fake_cuda, over memory files. Candidates are native programs whose "kernels" are loops, and Python's.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
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

// What a program asks of the driver, and of whether it is watched: only the fake one tells it.
constexpr char kDriver[] = R"(#include <dlfcn.h>
#include <sys/socket.h>
void* Find(const char* name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name); }
bool IsWatched() { return *static_cast<void**>(Find("fake_cuda_on_launch")) != nullptr; }
void Launch(const char* symbol, unsigned num_blocks) {
  void* kernel = nullptr;
  reinterpret_cast<int (*)(void**, void*, const char*)>(Find("cuModuleGetFunction"))(&kernel, nullptr, symbol);
  using Count = unsigned;
  using Launch = int (*)(void*, Count, Count, Count, Count, Count, Count, Count, void*, void**, void**);
  const auto launch = reinterpret_cast<Launch>(Find("cuLaunchKernel"));
  launch(kernel, num_blocks, 1, 1, 256, 1, 1, 512, nullptr, nullptr, nullptr);
}
// To the referee, for the jail.
void Say(const char* text) {
  char frame[4096] = {static_cast<char>(std::strlen(text)), static_cast<char>(std::strlen(text) >> 8)};
  std::strcpy(frame + 4, text);
  for (int fd = 3; fd < 256; ++fd) send(fd, frame, 4 + std::strlen(text), MSG_NOSIGNAL);
}
)";

// With a stream behind the outputs, which a native program for a GPU is given.
std::string Source(const std::string& statements) {
  std::string source = CandidateBody(statements, kDriver);
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

absl::StatusOr<v1::Measurement> Judge(const std::string& statements, JudgeRequest request,
                                      absl::Duration patience = kPatience) {
  const UniqueFd library = CompileCandidate(Source(statements));
  request.library_fd = library.get();
  return GpuReferee().Judge(request, absl::Now() + patience + FormsTimeMax(request.timing.baselines));
}

absl::StatusOr<v1::Measurement> Judge(const std::string& statements, bool verify_only,
                                      absl::Duration patience = kPatience) {
  JudgeRequest request = Request();
  request.verify_only = verify_only;
  return Judge(statements, request, patience);
}

v1::Grade GradeOf(const std::string& statements, bool verify_only = true) {
  const absl::StatusOr<v1::Measurement> measurement = Judge(statements, verify_only);
  REQUIRE(measurement.ok());
  return measurement->grade();
}

// Where the jails can tell what is launched.
bool HasCupti() {
  if (std::filesystem::exists(FakeCudaFolder() / "libcupti.so.13")) return true;
  WARN("built without CUPTI's header: nothing is tested");
  return false;
}

// Of a Python program, timed.
v1::Grade PythonGradeOf(const std::string& source) {
  JudgeRequest request;
  request.task = TestTask("scaled_relu_square");
  request.kind = CandidateKind::kKernelBenchPython;
  request.source = source;
  request.timing.num_instances_min = 2;
  request.timing.num_instances_max = 2;
  const auto measurement = GpuReferee().Judge(request, absl::Now() + kPatience);
  INFO(measurement.status().ToString());
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

TEST_CASE("clocks are told, and a round during which they changed is timed again") {
  const v1::Grade steady = GradeOf(kRight, /*verify_only=*/false);
  INFO(steady.ShortDebugString());
  CHECK(steady.timing().clocks().sm_mhz_min() == 990);
  CHECK(steady.timing().clocks().sm_mhz_max() == 990);
  CHECK(steady.timing().clocks().memory_mhz_min() == 2600);
  CHECK(steady.timing().clocks().throttle_reasons().empty());
  CHECK(steady.timing().clocks().num_repeated_rounds() == 0);
  TestDriver().Say("throttle 1 1\n");  // at the end of the first round
  const v1::Timing throttled = GradeOf(kRight, /*verify_only=*/false).timing();
  TestDriver().Say("");
  INFO(throttled.ShortDebugString());
  CHECK(throttled.clocks().num_repeated_rounds() == 1);
  CHECK(throttled.clocks().sm_mhz_min() == 990);
  CHECK(throttled.clocks().throttle_reasons().empty());
  CHECK_THAT(throttled.quality(), !Catch::Contains("clocks"));
}

TEST_CASE("a GPU that is slowed down all the time, or does not tell its clocks, is timed and says so") {
  TestDriver().Say("throttle 0 1000\n");
  const v1::Timing slow = GradeOf(kRight, /*verify_only=*/false).timing();
  CHECK(slow.clocks().sm_mhz_max() == 660);
  REQUIRE(slow.clocks().throttle_reasons_size() == 1);
  CHECK(slow.clocks().throttle_reasons(0) == "power cap");
  CHECK(slow.clocks().num_repeated_rounds() == 0);
  TestDriver().Say("fail nvmlDeviceGetClockInfo 3\n");
  const v1::Grade unknown = GradeOf(kRight, /*verify_only=*/false);
  TestDriver().Say("");
  CHECK(unknown.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(unknown.timing().has_clocks());
  CHECK_THAT(unknown.timing().quality(),
             Catch::Contains("; clocks are not known: nvmlDeviceGetClockInfo: Not Supported (3)"));
}

TEST_CASE("a grade tells what a call launched, by the program's own word") {
  if (!HasCupti()) return;
  const std::string launches = R"(
  Launch("_Z4fillPf", 3);
  Launch("_Z12softmax_rowsPfPKfi", 40);
  Launch("_Z4fillPf", 3);
)";
  const v1::Grade grade = GradeOf(launches + kRight, /*verify_only=*/false);
  INFO(grade.ShortDebugString());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.profile().num_launches() == 3);
  REQUIRE(grade.profile().kernels_size() == 2);
  const v1::KernelRun& longest = grade.profile().kernels(0);
  CHECK(longest.name() == "softmax_rows");
  CHECK(longest.us() == 40);
  CHECK(longest.registers() == 40);
  CHECK(longest.shared_bytes() == 528);
  CHECK(std::vector<int>(longest.grid().begin(), longest.grid().end()) == std::vector<int>{40, 1, 1});
  CHECK(std::vector<int>(longest.block().begin(), longest.block().end()) == std::vector<int>{256, 1, 1});
  CHECK(grade.profile().kernels(1).num_launches() == 2);
}

TEST_CASE("a program that forges the list harms its own evidence alone") {
  if (!HasCupti()) return;
  const v1::Grade forged = GradeOf(std::string(kRight) + R"(
  if (IsWatched()) Say(R"x({"op":"profiled","num_launches":-1,"kernels":[{"name":"a\nb","us":1e300},7]})x");
)",
                                   /*verify_only=*/false);
  INFO(forged.ShortDebugString());
  REQUIRE(forged.verdict() == v1::VERDICT_CORRECT);
  REQUIRE(forged.profile().kernels_size() == 1);
  CHECK(forged.profile().kernels(0).name() == "a\\nb");
  CHECK(forged.profile().kernels(0).us() == 0);
  const v1::Grade nonsense =
      GradeOf(std::string(kRight) + R"(if (IsWatched()) Say("{\"op\":\"done\"}");)", false);
  CHECK(nonsense.verdict() == v1::VERDICT_CORRECT);
  CHECK(nonsense.profile().kernels_size() == 0);
}

TEST_CASE("a program that dies, fails or hangs when it is watched keeps its verdict and its times") {
  if (!HasCupti()) return;
  for (const char* const end :
       {"_exit(0);", "abort();", "return 7;", "for (volatile int i = 0;; i = 0) {}"}) {
    INFO(end);
    const v1::Grade grade = GradeOf(absl::StrCat(kRight, "if (IsWatched()) {", end, "}"), false);
    INFO(grade.ShortDebugString());
    REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.timing().speedup() > 0);
    CHECK(grade.profile().kernels_size() == 0);
    CHECK(grade.profile().num_launches() == 0);
  }
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("of a Python program it is told likewise") {
  if (!HasCupti()) return;
  const v1::Grade grade = PythonGradeOf(R"(
import ctypes
import torch

driver = ctypes.CDLL("libcuda.so.1")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernel = ctypes.c_void_p()
        driver.cuModuleGetFunction(ctypes.byref(kernel), None, b"_Z6squarePf")
        driver.cuLaunchKernel(kernel, 9, 1, 1, 64, 1, 1, 0, None, None, None)
        return torch.relu(2 * x + 1) ** 2
)");
  INFO(grade.ShortDebugString());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(grade.timing().libraries_withheld());
  CHECK(grade.profile().num_launches() == 1);
  REQUIRE(grade.profile().kernels_size() == 1);
  CHECK(grade.profile().kernels(0).name() == "square");
  CHECK(grade.profile().kernels(0).us() == 9);
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

TEST_CASE("a flood of output is no fault of a right program, and of it little is kept") {
  const absl::StatusOr<v1::Measurement> measurement = Judge(
      "for (int i = 0; i < 40000; ++i) std::printf(\"%d: all is well, and this is said often\\n\", i);\n" +
          std::string(kRight),
      /*verify_only=*/true);
  REQUIRE(measurement.ok());
  CHECK(measurement->grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(measurement->output_tail().size() < 4096);
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

TEST_CASE("a driver that answers late costs time, and one that does not answer its referee") {
  TestDriver().Say("late cuMemCreate 300\nlate cuMemcpyDtoH_v2 20\n");
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
  // As often as a candidate is judged.
  TestDriver().Say("late cuCtxSynchronize 3600000\n");
  for (int attempt = 0; attempt < 3; ++attempt) {
    CHECK(absl::IsDeadlineExceeded(Judge(kRight, /*verify_only=*/true, absl::Seconds(1)).status()));
  }
  TestDriver().Say("");
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

}  // namespace
}  // namespace warpsmith
