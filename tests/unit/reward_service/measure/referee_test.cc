#include "reward_service/measure/referee.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const TaskSource kTask{"key", "class Model: pass"};

// What a referee's client has of a process that answers by a script, a life after the other.
struct Bench {
  explicit Bench(const std::string& script) {
    const std::filesystem::path program = folder.path() / "warpsmith-referee";
    const std::filesystem::path fake = std::filesystem::absolute("tests/support/fake_referee_process.py");
    WS_CHECK(WriteFileAtomically(folder.path() / "script", script).ok());
    const std::string command = absl::StrCat("#!/bin/sh\nexec ", GetBuildInfo().python, " -B ", fake.string(),
                                             " ", (folder.path() / "script").string(), "\n");
    WS_CHECK(WriteFileAtomically(program, command).ok());
    WS_CHECK(chmod(program.c_str(), 0755) == 0);
    options.lane_cores = {0};
    options.bin_directory = folder.path();
  }

  absl::StatusOr<std::unique_ptr<Referee>> Start() const { return Referee::Start(options); }
  std::unique_ptr<Referee> MustStart() const {
    auto referee = Start();
    WS_CHECK(referee.ok()) << referee.status().ToString();
    return *std::move(referee);
  }
  // How many processes there have been.
  int64_t num_lives() const {
    const auto lives = ReadFile(folder.path() / "script.lives");
    return lives.ok() ? std::count(lives->begin(), lives->end(), '\n') : 0;
  }

  TemporaryDirectory folder;
  RefereeOptions options;
};

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }
// A client waits a second longer than it is told to, for the referee to say so itself.
absl::Time AtOnce() { return absl::Now() - absl::Milliseconds(950); }

absl::StatusOr<std::vector<ExtensionRecord>> Record(Referee& referee, absl::Time deadline = Soon()) {
  return referee.RecordExtensions(kTask, "class ModelNew: pass", deadline);
}

TEST_CASE("a started referee has told its facts, and tells them again when it is calibrated") {
  const Bench bench(R"([{"calibrate": {"facts": {"lane_cores": "3", "realtime": false, "profile": true,
      "torch_version": "2", "torch_cpu_capability": "AVX2", "empty_call_us": 40, "sample_us": 15,
      "gigabytes_per_second_ceiling": 2, "nearest_cache_gigabytes_per_second": 100, "gpu": null}}}])");
  const auto referee = bench.MustStart();
  CHECK(referee->facts().lane_cores == "3");
  CHECK(referee->facts().gigabytes_per_second_ceiling == 5);
  REQUIRE(referee->Calibrate().ok());
  CHECK(referee->facts().gigabytes_per_second_ceiling == 2);
}

TEST_CASE("a referee that cannot start says why in its own words, or has ended") {
  const Bench refuses(R"([{"start": {"op": "failed", "code": 9, "error": "no namespaces"}}])");
  CHECK(refuses.Start().status() == absl::FailedPreconditionError("no namespaces"));
  CHECK(absl::IsInternal(Bench(R"([{"start": "end"}])").Start().status()));
  Bench without_cores("[{}]");
  without_cores.options.lane_cores.clear();
  CHECK(absl::IsInvalidArgument(without_cores.Start().status()));
  Bench without_program("[{}]");
  without_program.options.bin_directory = "/nowhere";
  CHECK(absl::IsFailedPrecondition(without_program.Start().status()));
}

TEST_CASE("what a program wants built is read from the referee's list") {
  const std::string list =
      R"([{"name": "twice", "cpp_sources": ["source"], "cuda_sources": [], "functions": ["f"],
      "extra_cflags": ["-O3"], "extra_cuda_cflags": [], "extra_ldflags": []}])";
  const Bench bench(nlohmann::json::array({{{"record", {{"file", list}}}}}).dump());
  const auto records = Record(*bench.MustStart());
  REQUIRE(records.ok());
  REQUIRE(records->size() == 1);
  CHECK(records->front().name == "twice");
  CHECK(records->front().extra_cflags == std::vector<std::string>{"-O3"});
}

TEST_CASE("a list that is none is the candidate's, an answer without one the referee's") {
  CHECK(absl::IsInvalidArgument(Record(*Bench(R"([{"record": {"file": "no JSON"}}])").MustStart()).status()));
  CHECK(absl::IsInternal(Record(*Bench("[{}]").MustStart()).status()));
}

TEST_CASE("a judgement is read from the referee's file, and without one it is the referee's failure") {
  const JudgeRequest request{.task = kTask, .kind = CandidateKind::kKernelBenchPython};
  const auto judge = [&](const nlohmann::json& answer) {
    return Bench(nlohmann::json::array({{{"judge", answer}}}).dump()).MustStart()->Judge(request, Soon());
  };
  v1::Measurement measurement;
  measurement.mutable_grade()->set_verdict_reason("right");
  const auto judged = judge({{"file", measurement.SerializeAsString()}});
  REQUIRE(judged.ok());
  CHECK(judged->grade().verdict_reason() == "right");
  CHECK(absl::IsInternal(judge({{"file", "no measurement"}}).status()));
  CHECK(judge(nlohmann::json::object()).status() ==
        absl::InternalError("the referee's answer has no measurement"));
}

TEST_CASE("INVALID_ARGUMENT is the candidate's of a recording, and nobody's of a judgement") {
  const char* const failed = R"([{"record": {"op": "failed", "code": 3, "error": "NameError"},
                                  "judge": {"op": "failed", "code": 3, "error": "NameError"}}])";
  const Bench bench(failed);
  const auto referee = bench.MustStart();
  CHECK(Record(*referee).status() == absl::InvalidArgumentError("NameError"));
  JudgeRequest request{.task = kTask, .kind = CandidateKind::kKernelBenchPython};
  CHECK(referee->Judge(request, Soon()).status() == absl::InternalError("NameError"));
  CHECK(bench.num_lives() == 1);
}

TEST_CASE("a referee that does not answer in time is ended, and the next request has another") {
  const Bench bench(R"([{"judge": "silent", "record": "silent"}, {"record": {"file": "[]"}}])");
  const auto referee = bench.MustStart();
  CHECK(absl::IsDeadlineExceeded(Record(*referee, AtOnce()).status()));  // which may wait for tasks
  const JudgeRequest request{.task = kTask, .kind = CandidateKind::kKernelBenchPython};
  CHECK(absl::IsDeadlineExceeded(referee->Judge(request, AtOnce()).status()));
  CHECK(bench.num_lives() == 1);
  CHECK(referee->Revive().ok());
  CHECK(Record(*referee).ok());
  CHECK(bench.num_lives() == 2);
}

TEST_CASE("a recording starts no referee, and one that does not start is no fault of what is recorded") {
  const Bench bench(R"([{"record": "end"}, {"start": {"op": "failed", "code": 9, "error": "no namespaces"}},
                        {"start": {"op": "failed", "code": 3, "error": "no lane"}}])");
  const auto referee = bench.MustStart();
  CHECK(absl::IsUnavailable(Record(*referee).status()));
  CHECK(absl::IsUnavailable(Record(*referee).status()));
  CHECK(bench.num_lives() == 1);
  CHECK(referee->Revive() == absl::FailedPreconditionError("no namespaces"));
  CHECK(absl::IsUnavailable(Record(*referee).status()));
  CHECK(referee->Revive() == absl::InvalidArgumentError("no lane"));
  CHECK(absl::IsUnavailable(Record(*referee).status()));
}

TEST_CASE("a referee that says of three judgements in a row that time is up may hang, and is ended") {
  const Bench bench(R"([{"judge": {"op": "failed", "code": 4, "error": "not ready"},
                         "record": {"op": "failed", "code": 4, "error": "not ready"}}, {"judge": {"file": ""}}])");
  const auto referee = bench.MustStart();
  const JudgeRequest request{.task = kTask, .kind = CandidateKind::kKernelBenchPython};
  for (int i = 0; i < 3; ++i) {
    CHECK(bench.num_lives() == 1);
    CHECK(absl::IsDeadlineExceeded(Record(*referee).status()));  // which waits for tasks
    CHECK(absl::IsDeadlineExceeded(referee->Judge(request, Soon()).status()));
  }
  CHECK(referee->Judge(request, Soon()).ok());
  CHECK(bench.num_lives() == 2);
}

TEST_CASE("an answer to another question is none, and ends the referee") {
  const Bench bench(R"([{"record": {"id": 77, "file": "[]"}}, {"record": {"file": "[]"}}])");
  const auto referee = bench.MustStart();
  CHECK(Record(*referee).status() == absl::InternalError("the referee answers another question"));
  CHECK(referee->Revive().ok());
  CHECK(Record(*referee).ok());
  CHECK(bench.num_lives() == 2);
}

TEST_CASE("a referee that dies over a request costs that request, and the next has another") {
  const Bench bench(R"([{"judge": "end"}, {"judge": {"file": ""}}])");
  const auto referee = bench.MustStart();
  const JudgeRequest request{.task = kTask, .kind = CandidateKind::kKernelBenchPython};
  CHECK(absl::IsUnavailable(referee->Judge(request, Soon()).status()));
  CHECK(referee->Judge(request, Soon()).ok());
  CHECK(bench.num_lives() == 2);
}

TEST_CASE("a referee that dies again and again is given up, and an answer between makes good") {
  Bench bench(R"([{"judge": "end"}, {"judge": "end"}, {"judge": {"file": ""}, "calibrate": "end"},
                  {"judge": "end"}])");
  bench.options.num_restarts_max = 2;
  const auto referee = bench.MustStart();
  const JudgeRequest request{.task = kTask, .kind = CandidateKind::kKernelBenchPython};
  const auto judge = [&] { return referee->Judge(request, Soon()).status(); };
  CHECK_FALSE(judge().ok());
  CHECK_FALSE(judge().ok());
  CHECK(judge().ok());
  CHECK(bench.num_lives() == 3);
  CHECK_FALSE(referee->Calibrate().ok());
  CHECK_FALSE(judge().ok());
  CHECK_FALSE(judge().ok());
  CHECK(judge() == absl::UnavailableError("the referee died 2 times in a row; it is given up"));
  CHECK(bench.num_lives() == 5);
}

TEST_CASE("what is only foretold is not waited for") {
  const Bench bench(R"([{"record": {"file": "[]"}}])");
  const auto referee = bench.MustStart();
  referee->Prefetch(kTask);
  CHECK(Record(*referee).ok());
}

}  // namespace
}  // namespace warpsmith
