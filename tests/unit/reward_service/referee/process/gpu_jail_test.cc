// Native jails with a GPU, on the fake driver: memory, rights and the way there are real.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/sealed_jail.h"

namespace warpsmith {
namespace {

// With `statements` of a candidate whose tensors lie on the GPU.
SealedRun Run(const std::string& statements, int calls_of_run = 1) {
  const FakeGpu gpu;
  return RunNative(CompileCandidate(R"(#include <dlpack/dlpack.h>
#include <cstdint>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs, void*) {
  float* x = static_cast<float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  if (inputs[0]->device.device_type != kDLCUDA || outputs[0]->device.device_type != kDLCUDA) return 11;
)" + statements + R"(
  for (int64_t i = 0; i < 64 * 64; ++i) y[i] = 2 * x[i];
  return 0;
}
)"),
                   {.calls_of_run = calls_of_run, .gpu = true});
}

// A namespace's own /proc, which drivers look for, cannot be mounted by others than root.
bool CanOpenGpus() {
  if (geteuid() == 0) return true;
  WARN("not root: nothing is tested");
  return false;
}

TEST_CASE("a candidate reads and writes the referee's memory on the GPU") {
  if (!CanOpenGpus()) return;
  const SealedRun run = Run("");
  REQUIRE_FALSE(run.fault);
  CHECK(run.num_calls == 2);
  REQUIRE(run.output.size() == run.input.size());
  for (size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == 2 * run.input[i]);
}

TEST_CASE("a candidate is called on each input set of a batch") {
  if (!CanOpenGpus()) return;
  const SealedRun run = Run("", /*calls_of_run=*/3);
  REQUIRE_FALSE(run.fault);
  REQUIRE(run.input.size() == 3 * 64 * 64);
  REQUIRE(run.output.size() == run.input.size());
  for (size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == 2 * run.input[i]);
}

// Of two floats each.
int64_t NumOtherWords(const std::vector<float>& one, const std::vector<float>& other) {
  REQUIRE(one.size() == other.size());
  int64_t num = 0;
  for (size_t i = 0; i < one.size(); i += 2) num += one[i] != other[i] || one[i + 1] != other[i + 1] ? 1 : 0;
  return num;
}

std::vector<float> Sorted(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST_CASE("words of inputs and parameters lie in each other's place until the clock starts") {
  if (!CanOpenGpus()) return;
  const SealedRun run = Run(R"(
  const float* w = static_cast<const float*>(parameters[0]->data);
  for (int i = 0; i < 64 * 64; ++i) if (w[i] != i) return 12;
)");
  REQUIRE_FALSE(run.fault);
  for (size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == 2 * run.input[i]);
  std::vector<float> parameter(run.loaded_parameter.size());
  std::iota(parameter.begin(), parameter.end(), 0.0F);
  REQUIRE(parameter.size() == 64 * 64);
  // Of 64 pairs those that share a word with another are left out, and equal words cannot be told.
  for (const auto& [loaded, given] :
       {std::pair(run.loaded, run.input), std::pair(run.loaded_parameter, parameter)}) {
    CHECK(Sorted(loaded) == Sorted(given));
    const int64_t num_late = NumOtherWords(loaded, given);
    CHECK(num_late >= 64);
    CHECK(num_late <= 128);
  }
}

TEST_CASE("a call of a batch that returns another number than 0 is the last") {
  if (!CanOpenGpus()) return;
  const SealedRun run = Run("  static int calls; if (++calls == 2) return 7; if (calls > 2) return 8;", 3);
  REQUIRE(run.fault);
  CHECK(run.fault->reason == "run() returned 7");
  const SealedRun configuration = Run("  return 9;");
  REQUIRE(configuration.fault);
  CHECK_THAT(configuration.fault->reason,
             Catch::StartsWith("run() returned 9, which is cudaErrorInvalidConfig"));
}

TEST_CASE("inputs on the GPU cannot be written") {
  if (!CanOpenGpus()) return;
  const SealedRun run = Run("  x[0] = 1;");
  REQUIRE(run.fault);
  CHECK(run.fault->reason == "crashed: Segmentation fault");
}

TEST_CASE("with a GPU open no file can be read, no process looked at, no socket made") {
  if (!CanOpenGpus()) return;
  CHECK_FALSE(Run(R"(
  if (open("/etc/ld.so.cache", O_RDONLY) >= 0) return 1;
  if (open("/usr/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY) >= 0) return 2;
  if (open("/proc/self/maps", O_RDONLY) >= 0) return 3;
  if (open("/proc/self/mem", O_RDWR) >= 0) return 4;
  if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) return 5;
)")
                  .fault);
}

}  // namespace
}  // namespace warpsmith
