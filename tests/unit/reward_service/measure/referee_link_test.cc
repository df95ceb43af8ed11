#include "reward_service/measure/referee_link.h"

#include <sys/stat.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/build_info.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "reward_service/jail/messages.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// A link to a process that answers by a script.
struct Bench {
  explicit Bench(const std::string& script) {
    const std::filesystem::path program = folder.path() / "referee";
    const std::filesystem::path fake = std::filesystem::absolute("tests/support/fake_referee_process.py");
    WS_CHECK(WriteFileAtomically(folder.path() / "script", script).ok());
    const std::string command = absl::StrCat("#!/bin/sh\nexec ", GetBuildInfo().python, " -B ", fake.string(),
                                             " ", (folder.path() / "script").string(), "\n");
    WS_CHECK(WriteFileAtomically(program, command).ok());
    WS_CHECK(chmod(program.c_str(), 0755) == 0);
    auto opened = RefereeLink::Open(program, {{"op", "start"}}, Soon(), &started);
    WS_CHECK(opened.ok()) << opened.status().ToString();
    link = *std::move(opened);
  }
  absl::StatusOr<Packet> Ask(const char* op, absl::Time deadline = Soon(), Late late = Late::kBreaks) {
    return link->Ask({{"op", op}}, {}, deadline, late, &sent);
  }

  TemporaryDirectory folder;
  Packet started;
  bool sent = false;
  std::unique_ptr<RefereeLink> link;
};

TEST_CASE("what a process says first is not lost, and each question has its own answer") {
  Bench bench("[{}]");
  CHECK(bench.started.fields["op"] == "started");
  const auto first = bench.Ask("record"), second = bench.Ask("calibrate");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->fields["op"] == "recorded");
  CHECK(second->fields["op"] == "calibrated");
  CHECK(first->fields["id"] != second->fields["id"]);
}

TEST_CASE("who waits for an answer keeps nobody else from having one") {
  Bench bench(R"([{"judge": "silent"}])");
  absl::Status judged;
  std::thread judge([&] {
    bool judge_sent = false;
    judged = bench.link->Ask({{"op", "judge"}}, {}, Soon(), Late::kBreaks, &judge_sent).status();
  });
  for (int i = 0; i < 3; ++i) CHECK(bench.Ask("record").ok());
  bench.link->Break(absl::InternalError("enough"));
  judge.join();
  CHECK(judged == absl::InternalError("enough"));
}

TEST_CASE("a process that is late, gone, or answers what nobody asked is broken for all") {
  Bench late(R"([{"record": "silent"}])");
  CHECK(absl::IsDeadlineExceeded(late.Ask("record", absl::Now() - absl::Milliseconds(950)).status()));
  CHECK(late.sent);
  CHECK(absl::IsDeadlineExceeded(late.Ask("calibrate").status()));
  CHECK_FALSE(late.sent);

  Bench gone(R"([{"record": "end"}])");
  CHECK(absl::IsUnavailable(gone.Ask("record").status()));
  CHECK(absl::IsUnavailable(gone.link->status()));

  Bench confused(R"([{"record": {"id": 77}}])");
  CHECK(confused.Ask("record").status() == absl::InternalError("the referee answers another question"));
}

TEST_CASE("a question that alone is late fails alone, and its answer is dropped when it comes") {
  Bench bench(R"([{"record": {"late_seconds": 2}}])");
  const absl::Time past = absl::Now() - absl::Milliseconds(950);
  CHECK(absl::IsDeadlineExceeded(bench.Ask("record", past, Late::kFails).status()));
  CHECK(bench.link->status().ok());
  const auto next = bench.Ask("calibrate");
  REQUIRE(next.ok());
  CHECK(next->fields["op"] == "calibrated");
}

TEST_CASE("there is no link to a program that is not there") {
  Packet started;
  const auto link = RefereeLink::Open("/nowhere/referee", {}, Soon(), &started);
  CHECK(absl::IsFailedPrecondition(link.status()));
}

}  // namespace
}  // namespace warpsmith
