#include "reward_service/grading/recent_grades.h"

#include <atomic>

#include "tests/support/catch.h"
#include "tests/support/run_together.h"

namespace warpsmith {
namespace {

std::shared_ptr<const PreparedRequest> PreparedOf(const std::string& tenant) {
  PreparedRequest prepared;
  prepared.tenant = std::make_shared<const Tenant>(Tenant{tenant});
  return std::make_shared<const PreparedRequest>(prepared);
}

v1::Grade GradeOf(v1::Verdict verdict, double reward = -1, const std::string& hack_family = "") {
  v1::Grade grade;
  grade.set_verdict(verdict);
  grade.set_hack_family(hack_family);
  if (reward >= 0) grade.mutable_reward()->set_value(reward);
  return grade;
}

std::string Sequences(const std::vector<std::shared_ptr<const RecentGrade>>& list) {
  std::string text;
  for (const auto& recent : list) text += std::to_string(recent->sequence) + " ";
  return text;
}

TEST_CASE("grades are listed from the latest on, by verdict, reward and family") {
  RecentGrades recent(int64_t{1} << 20);
  const auto prepared = PreparedOf("lab");
  recent.Add(prepared, GradeOf(v1::VERDICT_CORRECT, 1.5));
  recent.Add(prepared, GradeOf(v1::VERDICT_HACK, 0, "timer"));
  recent.Add(prepared, GradeOf(v1::VERDICT_UNSCORABLE));
  recent.Add(prepared, GradeOf(v1::VERDICT_CORRECT, 0.3));
  const RecentGradeFilter all{.tenant = "lab"};
  CHECK(Sequences(recent.List(all)) == "4 3 2 1 ");
  CHECK(Sequences(recent.List({.tenant = "lab", .verdict = v1::VERDICT_CORRECT})) == "4 1 ");
  CHECK(Sequences(recent.List({.tenant = "lab", .reward_min = 0.3})) == "4 1 ");
  CHECK(Sequences(recent.List({.tenant = "lab", .reward_max = 0.3})) == "4 2 ");
  CHECK(Sequences(recent.List({.tenant = "lab", .hack_family = "timer"})) == "2 ");
  CHECK(Sequences(recent.List({.tenant = "lab", .before = 3, .num_max = 1})) == "2 ");
  CHECK(recent.Find("lab", 2)->grade.hack_family() == "timer");
  CHECK(recent.VerdictCounts("lab").at(v1::VERDICT_CORRECT) == 2);
}

TEST_CASE("a tenant sees nothing of another's") {
  RecentGrades recent(int64_t{1} << 20);
  recent.Add(PreparedOf("lab"), GradeOf(v1::VERDICT_CORRECT, 1));
  CHECK(recent.List({.tenant = "farm"}).empty());
  CHECK(recent.Find("farm", 1) == nullptr);
  CHECK(recent.VerdictCounts("farm").empty());
}

TEST_CASE("what is kept is bounded in number and bytes, the verdicts' counts are not") {
  RecentGrades few(1 << 20, 2);
  RecentGrades small(2000);
  const auto prepared = PreparedOf("lab");
  for (int i = 0; i < 5; ++i) {
    few.Add(prepared, GradeOf(v1::VERDICT_CORRECT, 1));
    v1::Grade large = GradeOf(v1::VERDICT_CORRECT, 1);
    large.set_source(std::string(1500, 'x'));
    small.Add(prepared, large);
  }
  CHECK(Sequences(few.List({.tenant = "lab"})) == "5 4 ");
  CHECK(few.Find("lab", 3) == nullptr);
  CHECK(Sequences(small.List({.tenant = "lab"})) == "5 ");
  CHECK(few.VerdictCounts("lab").at(v1::VERDICT_CORRECT) == 5);
}

TEST_CASE("who lists while grades are added sees each that is kept once, the latest first") {
  constexpr int kNumGrades = 300;
  RecentGrades recent(int64_t{1} << 20, 20);
  const auto prepared = PreparedOf("lab");
  std::atomic<int> num_wrong{0};
  RunTogether(4, [&](int thread) {
    for (int i = 0; i < kNumGrades; ++i) {
      if (thread < 2) {
        recent.Add(prepared, GradeOf(v1::VERDICT_CORRECT, 1));
        continue;
      }
      int64_t before = INT64_MAX;
      for (const auto& listed : recent.List({.tenant = "lab"})) {
        num_wrong += listed->sequence >= before;
        before = listed->sequence;
        const auto found = recent.Find("lab", listed->sequence);
        num_wrong += found != nullptr && found != listed;
      }
    }
  });
  CHECK(num_wrong == 0);
  CHECK(recent.List({.tenant = "lab"}).front()->sequence == 2 * kNumGrades);
  CHECK(recent.VerdictCounts("lab").at(v1::VERDICT_CORRECT) == 2 * kNumGrades);
}

}  // namespace
}  // namespace warpsmith
