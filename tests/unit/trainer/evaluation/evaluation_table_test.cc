#include "trainer/evaluation/evaluation_table.h"

#include <algorithm>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"
#include "trainer/evaluation/evaluation.h"

namespace warpsmith {
namespace {

using nlohmann::ordered_json;

EvaluationStatistics Statistics(double reward) {
  return {.compile_rate = {1.0, 0.9, 1.0},
          .correct_rate = {0.75, 0.5, 1.0},
          .fast_1 = {0.25, 0.0, 0.5},
          .geomean_speedup = {12.5, 11.0, 14.25},
          .mean_reward = {reward, reward - 0.5, reward + 0.5},
          .num_tasks = 2,
          .num_answers = 8};
}

ordered_json Evaluated(double reward) {
  Evaluation evaluation;
  evaluation.held_out.sampled = Statistics(reward);
  evaluation.held_out.generate = Statistics(reward - 0.1);
  return EvaluationToJson(evaluation);
}

}  // namespace

TEST_CASE("the table has a block for each kind that was evaluated, before beside after") {
  const ordered_json before = Evaluated(1.0), after = Evaluated(2.0);
  CHECK(EvaluationTable({{"before", &before}, {"after", &after}}) ==
        "held-out tasks                              before                   after\n"
        "both skills     compile         1.000 [0.90, 1.00]      1.000 [0.90, 1.00]\n"
        "                correct         0.750 [0.50, 1.00]      0.750 [0.50, 1.00]\n"
        "                fast_1          0.250 [0.00, 0.50]      0.250 [0.00, 0.50]\n"
        "                speed-up     12.500 [11.00, 14.25]   12.500 [11.00, 14.25]\n"
        "                reward          1.000 [0.50, 1.50]      2.000 [1.50, 2.50]\n"
        "generate        compile         1.000 [0.90, 1.00]      1.000 [0.90, 1.00]\n"
        "                correct         0.750 [0.50, 1.00]      0.750 [0.50, 1.00]\n"
        "                fast_1          0.250 [0.00, 0.50]      0.250 [0.00, 0.50]\n"
        "                speed-up     12.500 [11.00, 14.25]   12.500 [11.00, 14.25]\n"
        "                reward          0.900 [0.40, 1.40]      1.900 [1.40, 2.40]\n"
        "Of scored programs, with 95 % intervals; the speed-up is the geometric mean of\n"
        "correct ones.\n");
}

TEST_CASE("greedy answers and unseen operators have their blocks, and one evaluation one column") {
  Evaluation evaluation;
  evaluation.held_out.sampled = evaluation.held_out.optimise = evaluation.held_out.greedy = Statistics(1.0);
  evaluation.unseen_operator.sampled = Statistics(0.5);
  const ordered_json json = EvaluationToJson(evaluation);
  const std::string table = EvaluationTable({{"evaluation", &json}});
  for (const char* block : {"\nboth skills ", "\noptimise ", "\ngreedy ", "\nunseen operator "}) {
    CHECK_THAT(table, Catch::Contains(block));
  }
  CHECK_THAT(table, !Catch::Contains("\ngenerate "));
  CHECK(std::count(table.begin(), table.end(), '\n') == 1 + 4 * 5 + 2);
}

TEST_CASE("a figure that does not exist is a dash, and what was not scored is counted") {
  Evaluation evaluation;
  evaluation.held_out.sampled =
      ComputeEvaluationStatistics({GroupOf({std::nullopt, std::nullopt, std::nullopt})}, 1);
  const ordered_json before = EvaluationToJson(evaluation), after = Evaluated(1.0);
  const std::string table = EvaluationTable({{"before", &before}, {"after", &after}});
  CHECK_THAT(table,
             Catch::Contains("\nboth skills     compile                          -      1.000 [0.90, 1.00]"));
  CHECK_THAT(table, Catch::Contains("speed-up                         -   12.500 [11.00, 14.25]"));
  CHECK_THAT(table, Catch::Contains("unscored                    3 of 3                  0 of 8\n"));
}

TEST_CASE("without a correct program there is no speed-up, rather than one of 0") {
  TransitionGroup group = GroupOf({0.0, 0.0});
  for (Transition& transition : group.transitions) transition.grade.verdict = Verdict::kIncorrect;
  Evaluation evaluation;
  evaluation.held_out.sampled = ComputeEvaluationStatistics({group}, 1);
  const ordered_json json = EvaluationToJson(evaluation);
  CHECK(json["geomean_speedup"].is_null());
  CHECK(json["correct_rate"] == 0.0);
  CHECK_THAT(EvaluationTable({{"before", &json}}), Catch::Contains("speed-up                         -\n"));
}

TEST_CASE("an evaluation that lacks a kind has dashes in its column") {
  const ordered_json before = {{"num_answers", 4}, {"mean_reward", 0.5}}, after = Evaluated(1.0);
  const std::string table = EvaluationTable({{"before", &before}, {"after", &after}});
  CHECK_THAT(table, Catch::Contains("reward                       0.500      1.000 [0.50, 1.50]\n"));
  CHECK_THAT(table,
             Catch::Contains("\ngenerate        compile                          -      1.000 [0.90, 1.00]"));
}

}  // namespace warpsmith
