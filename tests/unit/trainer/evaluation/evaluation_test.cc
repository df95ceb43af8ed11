#include "trainer/evaluation/evaluation.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"

namespace warpsmith {
namespace {

// Grades skill 2 better than skill 1 and greedy better than sampled.
class FakeGenerator : public GroupGenerator {
 public:
  absl::StatusOr<std::vector<TransitionGroup>> Generate(const GenerateRequest& request) override {
    requests.push_back(request);
    std::vector<TransitionGroup> groups;
    for (const Task& task : request.tasks) {
      TransitionGroup& group = groups.emplace_back();
      group.task = task;
      const double reward =
          (task.skill == Skill::kOptimise ? 1.0 : 0.5) + (request.sampling.temperature == 0 ? 1 : 0);
      for (int i = 0; i < request.num_samples; ++i) {
        group.transitions.emplace_back().grade = GradeOf(reward, absl::StrCat(task.id, i));
      }
      if (request.on_group) request.on_group(static_cast<int>(groups.size()), 0);
    }
    return groups;
  }

  std::vector<GenerateRequest> requests;
};

}  // namespace

TEST_CASE("the first evaluation makes the skill-2 tasks that later ones use again") {
  FakeGenerator generator;
  EvaluationTasks tasks{.generate = {{.id = "a"}, {.id = "b"}}};
  const auto before = EvaluateSplit(tasks, {.num_samples = 3}, 0, "before", generator);
  REQUIRE(before.ok());
  REQUIRE(tasks.optimise.size() == 2);
  CHECK(tasks.optimise[0].id.substr(0, 2) == "a#");
  const std::vector<Task> made = tasks.optimise;
  REQUIRE(EvaluateSplit(tasks, {.num_samples = 3}, 5, "after", generator).ok());
  CHECK(tasks.optimise[0].previous_source == made[0].previous_source);
  CHECK(generator.requests[0].seed == generator.requests[3].seed);
  CHECK(generator.requests[0].id != generator.requests[3].id);
}

TEST_CASE("an evaluation makes no skill-2 task that may not be made") {
  FakeGenerator generator;
  EvaluationTasks tasks{.generate = {{.id = "a"}, {.id = "b"}}};
  const EvaluationOptions options{.num_samples = 3,
                                  .may_make = [](const Task& task) { return task.id.front() == 'b'; }};
  REQUIRE(EvaluateSplit(tasks, options, 0, "before", generator).ok());
  REQUIRE(tasks.optimise.size() == 1);
  CHECK(tasks.optimise[0].id.front() == 'b');
}

TEST_CASE("whoever waits is told of every group of an evaluation, and of how many there will be") {
  FakeGenerator generator;
  EvaluationTasks tasks{.generate = {{.id = "a"}, {.id = "b"}}};
  std::vector<std::pair<int, int>> told;
  const EvaluationOptions options{.num_samples = 1, .on_group = [&](int num_arrived, int num_wanted) {
                                    told.emplace_back(num_arrived, num_wanted);
                                  }};
  REQUIRE(EvaluateSplit(tasks, options, 0, "before", generator).ok());
  REQUIRE(told.size() == 8);  // two tasks of each skill, sampled and greedy
  for (int i = 0; i < 8; ++i) CHECK(told[i] == std::pair(i + 1, 8));
}

TEST_CASE("every request of an evaluation names the formula") {
  FakeGenerator generator;
  EvaluationTasks tasks{.generate = {{.id = "a"}}};
  REQUIRE(EvaluateSplit(tasks, {.num_samples = 3, .formula = "kevin-v1"}, 0, "before", generator).ok());
  REQUIRE(generator.requests.size() == 3);
  for (const GenerateRequest& request : generator.requests) CHECK(request.formula == "kevin-v1");
}

TEST_CASE("sampled, greedy and each skill are told apart") {
  FakeGenerator generator;
  EvaluationTasks tasks{.generate = {{.id = "a"}, {.id = "b"}}};
  const auto split = EvaluateSplit(tasks, {.num_samples = 3}, 0, "before", generator);
  REQUIRE(split.ok());
  CHECK(split->sampled.num_answers == 12);
  CHECK(split->greedy.num_answers == 4);
  CHECK(split->generate.mean_reward.value == Approx(0.5));
  CHECK(split->optimise.mean_reward.value == Approx(1.0));
  CHECK(split->sampled.mean_reward.value == Approx(0.75));
  CHECK(split->greedy.mean_reward.value == Approx(1.75));
}

TEST_CASE("the JSON has every figure with its interval, greedy and the unseen operators") {
  const auto json = EvaluationToJson({});
  for (const char* name :
       {"compile_rate", "correct_rate", "fast_1", "geomean_speedup", "mean_reward", "hack_rate"}) {
    CHECK(json.contains(name));
    CHECK(json.contains(absl::StrCat(name, "_interval")));
    CHECK(json["greedy"].contains(name));
    CHECK(json["unseen_operator"]["greedy"].contains(name));
  }
}

}  // namespace warpsmith
