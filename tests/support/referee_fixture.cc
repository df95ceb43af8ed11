#include "tests/support/referee_fixture.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "tests/support/candidate_library.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

v1::Measurement MustJudge(const JudgeRequest& request) {
  const auto measurement = TestReferee().Judge(request, absl::Now() + kPatience);
  WS_CHECK(measurement.ok()) << measurement.status().ToString();
  return *measurement;
}

}  // namespace

Referee& TestReferee() {
  static const std::unique_ptr<Referee> referee = [] {
    RefereeOptions options;
    options.lane_cores = {static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1};
    auto started = Referee::Start(options);
    WS_CHECK(started.ok()) << started.status().ToString();
    return *std::move(started);
  }();
  return *referee;
}

TaskSource TestTask(const std::string& name) {
  const auto source = ReadFile("tests/data/tasks/" + name + ".py");
  WS_CHECK(source.ok()) << source.status().ToString();
  return MakeTask(*source);
}

TaskSource MakeTask(const std::string& source) { return {Sha256Hex(source), source}; }

v1::Measurement JudgeNative(const TaskSource& task, const std::string& candidate, bool verify_only) {
  const UniqueFd library = CompileCandidate(candidate);
  JudgeRequest request;
  request.task = task;
  request.library_fd = library.get();
  request.verify_only = verify_only;
  request.limits.cpu_seconds_max = 3;
  request.limits.call_seconds_max = 1;
  return MustJudge(request);
}

v1::Measurement JudgePython(const TaskSource& task, const std::string& candidate, bool verify_only) {
  JudgeRequest request;
  request.task = task;
  request.kind = CandidateKind::kKernelBenchPython;
  request.source = candidate;
  request.with_torch = true;
  request.verify_only = verify_only;
  request.limits.cpu_seconds_max = 5;
  request.limits.call_seconds_max = 1;
  return MustJudge(request);
}

}  // namespace warpsmith
