// A lane on a GPU of the fake driver, and native candidates that it judges.
#ifndef WARPSMITH_TESTS_INTEGRATION_FAKE_GPU_LANE_H_
#define WARPSMITH_TESTS_INTEGRATION_FAKE_GPU_LANE_H_

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/unique_fd.h"
#include "reward_service/measure/referee.h"
#include "reward_service/measure/reference_form.h"
#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/referee_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

inline constexpr absl::Duration kPatience = absl::Seconds(120);
inline constexpr char kRight[] =
    "for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }";

// What the driver is told, for all processes that have it by its name.
class ScriptedDriver {
 public:
  ScriptedDriver() {
    setenv("LD_LIBRARY_PATH", FakeCudaFolder().c_str(), /*overwrite=*/1);
    setenv("FAKE_CUDA", script_.c_str(), /*overwrite=*/1);
    Say("");
  }
  void Say(const std::string& script) const { WS_CHECK(WriteFileAtomically(script_, script).ok()); }

 private:
  const TemporaryDirectory folder_;
  const std::string script_ = folder_.path() / "script";
};

inline ScriptedDriver& TestDriver() {
  static ScriptedDriver driver;
  return driver;
}

struct FakeGpuLane {
  FakeGpuLane() {
    TestDriver();
    const auto gpus = FindGpus();
    WS_CHECK(gpus.ok() && gpus->size() == 1) << gpus.status().ToString();
    RefereeOptions options;
    options.lane_cores = {static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1};
    options.share_directory = ShareWithFakeGpu(ShareDirectory(), folder.path());
    options.gpu_uuid = gpus->front().uuid;
    options.host_draw_bytes_max = int64_t{1} << 30;
    auto started = Referee::Start(options);
    WS_CHECK(started.ok()) << started.status().ToString();
    referee = *std::move(started);
  }

  TemporaryDirectory folder;
  std::unique_ptr<Referee> referee;
};

inline Referee& GpuReferee() {
  static FakeGpuLane lane;
  return *lane.referee;
}

// What a program asks of the driver, and of whether it is watched: only the fake one tells it.
inline constexpr char kDriver[] = R"(#include <dlfcn.h>
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
inline std::string Source(const std::string& statements) {
  std::string source = CandidateBody(statements, kDriver);
  const std::string end = "DLTensor* const* outputs)";
  return source.replace(source.find(end), end.size(), "DLTensor* const* outputs, void* stream)");
}

inline JudgeRequest Request() {
  JudgeRequest request;
  request.task = TestTask("scaled_relu_square");
  request.limits.call_seconds_max = 1;
  request.timing.num_instances_min = 2;
  request.timing.num_instances_max = 3;
  return request;
}

inline absl::StatusOr<v1::Measurement> Judge(const std::string& statements, JudgeRequest request,
                                             absl::Duration patience = kPatience) {
  const UniqueFd library = CompileCandidate(Source(statements));
  request.library_fd = library.get();
  return GpuReferee().Judge(request, absl::Now() + patience + FormsTimeMax(request.timing.baselines));
}

inline absl::StatusOr<v1::Measurement> Judge(const std::string& statements, bool verify_only,
                                             absl::Duration patience = kPatience) {
  JudgeRequest request = Request();
  request.verify_only = verify_only;
  return Judge(statements, request, patience);
}

inline v1::Grade GradeOf(const std::string& statements, bool verify_only = true) {
  const absl::StatusOr<v1::Measurement> measurement = Judge(statements, verify_only);
  REQUIRE(measurement.ok());
  return measurement->grade();
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_INTEGRATION_FAKE_GPU_LANE_H_
