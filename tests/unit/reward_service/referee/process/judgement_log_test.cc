#include "reward_service/referee/process/judgement_log.h"

#include "tests/support/catch.h"
#include "tests/support/held_turn.h"
#include "tests/support/puppet_zygote.h"

namespace warpsmith {
namespace {

TEST_CASE("the line of a judgement has its verdict, its turns and the contexts of both zygotes") {
  const auto python = StartPuppets(), native = StartPuppets();
  const ChildRights rights{.role = "python", .memory_bytes_max = 1 << 30, .cpu_seconds_max = 10, .gpu = true};
  REQUIRE(python->Fork(rights, ContextFor::kOracle).ok());
  DeviceTurn turn;
  HoldTurn(&turn, DeviceTurn::Kind::kAlone, TurnFor::kTiming).reset();
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_cost()->set_verify_seconds(0.25);
  grade.mutable_timing()->mutable_candidate()->set_num_instances(2);
  const std::string line = DescribeJudgement(grade, &turn, python.get(), native.get());
  INFO(line);
  CHECK(line.find("judged VERDICT_CORRECT: ") == 0);
  CHECK(line.find("verified 0.25") != std::string::npos);
  CHECK(line.find("processes timed: 2;") != std::string::npos);
  CHECK(line.find("turns: time 1 (") != std::string::npos);
  CHECK(line.find("contexts: oracle 1") == line.size() - 18);
  REQUIRE(native->Fork(rights, ContextFor::kVerified).ok());
  const std::string next = DescribeJudgement(grade, &turn, python.get(), native.get());
  CHECK(next.find("turns: ; contexts: ; native: verified 1") != std::string::npos);
}

}  // namespace
}  // namespace warpsmith
