// `warpsmith grade` as a user calls it, against a real server.
#include <signal.h>

#include <cstdlib>
#include <string>

#include "cli/child_process.h"
#include "core/base/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A right answer to relu(2 x + 1) squared.
constexpr char kAnswer[] = R"(<think>One pass.</think>
```cpp
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs) {
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const long size = inputs[0]->shape[0] * inputs[0]->shape[1];
  for (long i = 0; i < size; ++i) {
    const float v = 2 * x[i] + 1;
    y[i] = v > 0 ? v * v : 0;
  }
  return 0;
}
```
)";

struct Result {
  int status = -1;
  std::string output;
};

// Runs `warpsmith` with its standard output in a file; logs go to the test's standard error.
Result RunWarpsmith(const std::vector<std::string>& arguments) {
  const TemporaryDirectory directory;
  const std::string output = directory.path() / "output";
  Command command{.name = "warpsmith",
                  .arguments = {"sh", "-c", "out=$1; shift; exec \"$@\" > \"$out\"", "sh", output,
                                std::string(std::getenv("WARPSMITH_BIN_DIR")) + "/warpsmith"}};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(command);
  REQUIRE(child.ok());
  return {child->AwaitEnd(absl::Seconds(60)).value_or(-1), ReadFile(output).value_or("")};
}

struct Files {
  Files() {
    REQUIRE(WriteFileAtomically(task, "class Model: pass\n").ok());
    REQUIRE(WriteFileAtomically(candidate, "extern \"C\" int run() { return 0; }\n").ok());
  }

  std::vector<std::string> Arguments(const std::string& format, const std::string& address) const {
    return {"grade", "--task",   task,   "--candidate", candidate, "--language",
            "cpp",   "--format", format, "--address",   address};
  }

  TemporaryDirectory directory;
  std::string task = directory.path() / "relu.py";
  std::string candidate = directory.path() / "relu.cc";
};

TEST_CASE("With --format json standard output is the Grade and nothing else") {
  const Files files;
  const ServerProcess server("warpsmith-hash-grader", {});
  const Result result = RunWarpsmith(files.Arguments("json", server.address()));
  REQUIRE(result.status == 0);
  const nlohmann::json grade = nlohmann::json::parse(result.output);
  CHECK(grade["taskId"] == "relu");
  CHECK(grade["verdict"].get<std::string>().rfind("VERDICT_", 0) == 0);
  CHECK(grade["reward"]["value"].is_number());
}

TEST_CASE("With --format text there is a table with verdict and reward") {
  const Files files;
  const ServerProcess server("warpsmith-hash-grader", {});
  const Result result = RunWarpsmith(files.Arguments("text", server.address()));
  REQUIRE(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("verdict      ") && Catch::Contains("reward       "));
}

TEST_CASE("Without an address a service is started for the call") {
  const TemporaryDirectory directory;
  const std::string answer = directory.path() / "answer.md";
  REQUIRE(WriteFileAtomically(answer, kAnswer).ok());
  // Grades that an earlier service remembers, perhaps by another default formula, are not ours.
  setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
  const Result result = RunWarpsmith({"grade", "--task", "tests/data/tasks/scaled_relu_square.py",
                                      "--candidate", answer, "--language", "cpp", "--format", "json"});
  REQUIRE(result.status == 0);
  const nlohmann::json grade = nlohmann::json::parse(result.output);
  INFO(result.output);
  CHECK(grade["verdict"] == "VERDICT_CORRECT");
  CHECK(grade["reward"]["value"].get<double>() > 0);
}

TEST_CASE("A missing task is refused before anything starts") {
  const Files files;
  const Result result = RunWarpsmith(
      {"grade", "--task", "/nonexistent.py", "--candidate", files.candidate, "--language", "cpp"});
  CHECK(result.status != 0);
  CHECK(result.output.empty());
}

TEST_CASE("A run whose configuration has an unknown section ends at once with status 1") {
  const TemporaryDirectory directory;
  const std::string config = directory.path() / "bad.yaml";
  REQUIRE(WriteFileAtomically(config, "trianer: {}\n").ok());
  CHECK(RunWarpsmith({"up", config}).status == 1);
}

}  // namespace
}  // namespace warpsmith
