#include "trainer/run_folder/run_progress.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

using nlohmann::json;

Task TaskFromJson(const json& value) {
  return {.id = value.at("id"),
          .skill = static_cast<Skill>(value.at("skill").get<int>()),
          .family = value.at("family"),
          .reference_source = value.at("reference_source"),
          .language = value.at("language"),
          .device = value.value("device", ""),  // older checkpoints lack it
          .allowed_libraries = value.at("allowed_libraries"),
          .previous_source = value.at("previous_source"),
          .feedback = {.finding = value.at("finding"),
                       .evidence = value.at("evidence"),
                       .advice = value.at("advice")},
          .previous_reward = value.at("previous_reward")};
}

template <typename Tasks>
json TasksToJson(const Tasks& tasks) {
  json list = json::array();
  for (const Task& task : tasks) list.push_back(TaskToJson(task));
  return list;
}

template <typename Tasks>
void TasksFromJson(const json& list, Tasks& tasks) {
  for (const json& value : list) tasks.push_back(TaskFromJson(value));
}

json ColdStartToJson(const ColdStartProgress& progress) {
  return {{"finished", progress.finished},
          {"step", progress.step},
          {"num_tokens", progress.num_tokens},
          {"seconds", progress.seconds},
          {"data_cursor", progress.data_cursor},
          {"best_loss", progress.best_loss},
          {"best_step", progress.best_step},
          {"best_checkpoint", progress.best_checkpoint},
          {"num_without_gain", progress.num_without_gain},
          {"matrix_update", progress.matrix_update}};
}

ColdStartProgress ColdStartFromJson(const json& value) {
  return {.finished = value.at("finished"),
          .step = value.at("step"),
          .num_tokens = value.at("num_tokens"),
          .seconds = value.at("seconds"),
          .data_cursor = value.at("data_cursor"),
          .best_loss = value.at("best_loss"),
          .best_step = value.at("best_step"),
          .best_checkpoint = value.value("best_checkpoint", int64_t{0}),  // older checkpoints lack it
          .num_without_gain = value.at("num_without_gain"),
          .matrix_update = value.value("matrix_update", "")};  // older checkpoints lack it
}

}  // namespace

json TaskToJson(const Task& task) {
  return {{"id", task.id},
          {"skill", static_cast<int>(task.skill)},
          {"family", task.family},
          {"reference_source", task.reference_source},
          {"language", task.language},
          {"device", task.device},
          {"allowed_libraries", task.allowed_libraries},
          {"previous_source", task.previous_source},
          {"finding", task.feedback.finding},
          {"evidence", task.feedback.evidence},
          {"advice", task.feedback.advice},
          {"previous_reward", task.previous_reward}};
}

json ProgressToJson(const RunProgress& progress) {
  const GrpoProgress& grpo = progress.grpo;
  return {{"run_id", progress.run_id},
          {"cold_start", ColdStartToJson(progress.cold_start)},
          {"grpo",
           {{"step", grpo.step},
            {"seconds", grpo.seconds},
            {"task_cursor", grpo.task_cursor},
            {"optimise_cursor", grpo.optimise_cursor},
            {"num_draws", grpo.num_draws},
            {"feedback_tasks", TasksToJson(grpo.feedback_tasks)}}},
          {"policy_version", progress.policy_version},
          {"wall_seconds", progress.wall_seconds},
          {"device", progress.device},
          {"metrics_bytes", progress.metrics_bytes},
          {"transitions_bytes", progress.transitions_bytes},
          {"evaluation_before", progress.evaluation_before},
          {"held_out_optimise", TasksToJson(progress.held_out_optimise)},
          {"unseen_optimise", TasksToJson(progress.unseen_optimise)}};
}

absl::StatusOr<RunProgress> ProgressFromJson(const json& value) {
  RunProgress progress;
  try {
    progress.run_id = value.value("run_id", "");  // older checkpoints lack it
    progress.cold_start = ColdStartFromJson(value.at("cold_start"));
    const json& grpo = value.at("grpo");
    progress.grpo = {
        .step = grpo.at("step"),
        .seconds = grpo.at("seconds"),
        .task_cursor = grpo.at("task_cursor"),
        .optimise_cursor = grpo.value("optimise_cursor", uint64_t{0}),  // older checkpoints lack it
        .num_draws = grpo.at("num_draws")};
    TasksFromJson(grpo.at("feedback_tasks"), progress.grpo.feedback_tasks);
    progress.policy_version = value.at("policy_version");
    progress.wall_seconds = value.at("wall_seconds");
    progress.device = value.value("device", "");  // older checkpoints lack it
    progress.metrics_bytes = value.at("metrics_bytes");
    progress.transitions_bytes = value.at("transitions_bytes");
    progress.evaluation_before = value.at("evaluation_before");
    TasksFromJson(value.at("held_out_optimise"), progress.held_out_optimise);
    TasksFromJson(value.at("unseen_optimise"), progress.unseen_optimise);
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("a checkpoint's progress is malformed: ", Escape(error.what(), 512)));
  }
  return progress;
}

}  // namespace warpsmith
