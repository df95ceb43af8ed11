#include "trainer/run_folder/run_progress.h"

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("progress comes back from its JSON as it was") {
  RunProgress progress;
  progress.cold_start = {.finished = true,
                         .step = 7,
                         .num_tokens = 1234,
                         .seconds = 0.1,
                         .best_loss = 1.0 / 3,
                         .matrix_update = "muon"};
  progress.grpo = {
      .step = 3, .seconds = 2.5, .task_cursor = ~uint64_t{0}, .optimise_cursor = 5, .num_draws = 9};
  progress.grpo.feedback_tasks.push_back({.id = "a#1",
                                          .skill = Skill::kOptimise,
                                          .reference_source = "r\n\"quoted\"",
                                          .device = "cuda",
                                          .allowed_libraries = {"blas"},
                                          .previous_source = "p",
                                          .feedback = {"f", "e", 8},
                                          .previous_reward = 0.1});
  progress.run_id = "00ff";
  progress.policy_version = 3;
  progress.evaluation_before = "{}";
  const auto json = nlohmann::json::parse(ProgressToJson(progress).dump());
  const auto restored = ProgressFromJson(json);
  REQUIRE(restored.ok());
  CHECK(ProgressToJson(*restored) == ProgressToJson(progress));
  CHECK(restored->cold_start.best_loss == 1.0 / 3);
  CHECK(restored->cold_start.matrix_update == "muon");
  CHECK(restored->run_id == "00ff");
  CHECK(restored->grpo.optimise_cursor == 5);
  CHECK(restored->grpo.feedback_tasks.front().feedback.advice == 8);
  CHECK(restored->grpo.feedback_tasks.front().device == "cuda");
}

TEST_CASE("a checkpoint of before tasks had devices is read") {
  RunProgress progress;
  progress.grpo.feedback_tasks.push_back({.id = "a#1", .device = "cuda"});
  auto json = nlohmann::json::parse(ProgressToJson(progress).dump());
  json["grpo"]["feedback_tasks"][0].erase("device");
  const auto restored = ProgressFromJson(json);
  REQUIRE(restored.ok());
  CHECK(restored->grpo.feedback_tasks.front().device.empty());
}

TEST_CASE("the progress of a run that has not begun survives too") {
  const auto restored = ProgressFromJson(nlohmann::json::parse(ProgressToJson({}).dump()));
  REQUIRE(restored.ok());
  CHECK(restored->cold_start.best_loss == RunProgress().cold_start.best_loss);
}

TEST_CASE("a checkpoint of before runs had ids is read") {
  auto json = nlohmann::json::parse(ProgressToJson({.run_id = "00ff"}).dump());
  json.erase("run_id");
  const auto restored = ProgressFromJson(json);
  REQUIRE(restored.ok());
  CHECK(restored->run_id.empty());
}

TEST_CASE("a checkpoint of before there were files of skill 2 is read") {
  auto json = nlohmann::json::parse(ProgressToJson({.grpo = {.step = 3, .optimise_cursor = 5}}).dump());
  json["grpo"].erase("optimise_cursor");
  const auto restored = ProgressFromJson(json);
  REQUIRE(restored.ok());
  CHECK(restored->grpo.step == 3);
  CHECK(restored->grpo.optimise_cursor == 0);
}

TEST_CASE("JSON of something else is refused") {
  CHECK(absl::IsInvalidArgument(ProgressFromJson(nlohmann::json::parse("{\"grpo\": 1}")).status()));
}

}  // namespace warpsmith
