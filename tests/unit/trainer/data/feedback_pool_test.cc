#include "trainer/data/feedback_pool.h"

#include <set>
#include <string>

#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

TEST_CASE("a graded answer becomes a skill-2 task that remembers where it came from") {
  FeedbackPool pool(4);
  TransitionGroup group = GroupOf({0.7}, "task_3");
  group.transitions[0].grade.source_sha256 = "0123456789abcdef0123";
  pool.AddFrom(group, 1);
  const auto task = pool.Take();
  REQUIRE(task.has_value());
  CHECK(task->id == "task_3#0123456789abcdef");
  CHECK(task->skill == Skill::kOptimise);
  CHECK(task->previous_source == group.transitions[0].grade.source);
  CHECK(task->previous_reward == 0.7);
  CHECK(task->feedback.finding == "scalar code");
  CHECK_FALSE(pool.Take().has_value());
}

TEST_CASE("the oldest task makes room") {
  FeedbackPool pool(2);
  for (const char* id : {"a", "b", "c"}) pool.AddFrom(GroupOf({1.0}, id), 1);
  CHECK(pool.size() == 2);
  CHECK(pool.Take()->id.substr(0, 2) == "b#");
}

TEST_CASE("the worst program is taken first, of equal ones the oldest") {
  FeedbackPool pool(8);
  pool.AddFrom(GroupOf({1.0}, "slow"), 1);
  pool.AddFrom(GroupOf({3.0}, "fast"), 1);
  pool.AddFrom(GroupOf({0.0}, "wrong"), 1);
  pool.AddFrom(GroupOf({0.0}, "later"), 1);
  for (const std::string expected : {"wrong", "later", "slow", "fast"})
    CHECK(pool.Take()->id.substr(0, expected.size()) == expected);
}

TEST_CASE("unscorable, hacked, codeless and skill-2 answers are not taken") {
  FeedbackPool pool(8);
  pool.AddFrom(GroupOf({std::nullopt}), 1);
  for (const Verdict verdict : {Verdict::kNoCode, Verdict::kHack}) {
    TransitionGroup group = GroupOf({0.0});
    group.transitions[0].grade.verdict = verdict;
    pool.AddFrom(group, 1);
  }
  TransitionGroup optimise = GroupOf({1.0});
  optimise.task.skill = Skill::kOptimise;
  pool.AddFrom(optimise, 1);
  CHECK(pool.size() == 0);
}

TEST_CASE("an answer of which no task may be made is passed over for another of its group") {
  TransitionGroup group = GroupOf({1.0, 2.0, 3.0});
  for (size_t i = 0; i < 3; ++i) group.transitions[i].grade.source = std::string(10 * (i + 1), 'x');
  for (uint64_t seed = 0; seed < 8; ++seed) {
    FeedbackPool pool(8, [](const Task& task) { return task.previous_source.size() <= 10; });
    pool.AddFrom(group, seed);
    CHECK(pool.Take()->previous_reward == 1.0);
  }
  FeedbackPool none(8, [](const Task&) { return false; });
  none.AddFrom(group, 1);
  CHECK(none.size() == 0);
}

TEST_CASE("a program for which nothing is advised is not taken") {
  FeedbackPool pool(8);
  TransitionGroup group = GroupOf({1.0});
  group.transitions[0].grade.feedback = {.finding = "unknown", .evidence = "3 samples", .advice = 0};
  pool.AddFrom(group, 1);
  CHECK(pool.size() == 0);
}

TEST_CASE("a program that is told to stay as it is is not taken") {
  FeedbackPool pool(8);
  TransitionGroup group = GroupOf({3.0, 1.0});
  group.transitions[0].grade.feedback.advice = v1::ADVICE_KEEP;
  for (uint64_t seed = 0; seed < 20; ++seed) pool.AddFrom(group, seed);
  REQUIRE(pool.size() == 8);
  while (const auto task = pool.Take()) CHECK(task->previous_reward == 1.0);
  group.transitions.pop_back();
  pool.AddFrom(group, 1);
  CHECK(pool.size() == 0);
}

TEST_CASE("the choice follows from the seed and reaches every answer") {
  TransitionGroup group = GroupOf({0.0, 1.0, 2.0});
  std::set<double> chosen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FeedbackPool first(1), second(1);
    first.AddFrom(group, seed);
    second.AddFrom(group, seed);
    const double reward = first.Take()->previous_reward;
    CHECK(reward == second.Take()->previous_reward);
    chosen.insert(reward);
  }
  CHECK(chosen.size() == 3);
}

}  // namespace warpsmith
