#include "trainer/run_log.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

// Text of others may hold invalid UTF-8, which JSON cannot.
std::string Dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const std::filesystem::path& directory,
                                                     const RunProgress& progress) {
  ASSIGN_OR_RETURN(AppendFile metrics, AppendFile::Open(directory / "metrics.jsonl", progress.metrics_bytes));
  ASSIGN_OR_RETURN(AppendFile transitions,
                   AppendFile::Open(directory / "transitions.jsonl", progress.transitions_bytes));
  const std::filesystem::path events_directory = directory / "tensorboard";
  std::error_code error;
  std::filesystem::create_directories(events_directory, error);
  if (error)
    return absl::InternalError(
        absl::StrCat("cannot make ", events_directory.string(), ": ", error.message()));
  ASSIGN_OR_RETURN(TensorboardWriter events, TensorboardWriter::Create(events_directory, absl::Now()));
  return std::unique_ptr<RunLog>(new RunLog(std::move(metrics), std::move(transitions), std::move(events)));
}

RunLog::RunLog(AppendFile metrics, AppendFile transitions, TensorboardWriter events)
    : metrics_(std::move(metrics)), transitions_(std::move(transitions)), events_(std::move(events)) {}

absl::Status RunLog::WriteMetrics(const std::string& phase, int64_t step,
                                  const std::vector<NamedScalar>& metrics,
                                  const std::vector<NamedText>& texts) {
  nlohmann::ordered_json line = {{"phase", phase}, {"step", step}};
  std::vector<NamedScalar> scalars;
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value)) {
      line[name] = value;
      scalars.emplace_back(absl::StrCat(phase, "/", name), value);
    } else {
      line[name] = nullptr;
    }
  }
  for (const auto& [name, text] : texts) {
    line[name] = text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  }
  RETURN_IF_ERROR(metrics_.Append(Dump(line) + "\n"));
  return events_.Write(step, absl::Now(), scalars);
}

absl::Status RunLog::WriteTransitions(const std::string& phase, int64_t step, const TransitionGroup& group,
                                      const std::vector<std::optional<double>>& advantages) {
  std::string lines;
  for (size_t i = 0; i < group.transitions.size(); ++i) {
    const Task& task = group.task;
    nlohmann::ordered_json line = {
        {"phase", phase},        {"step", step},
        {"task_id", task.id},    {"skill", task.skill == Skill::kGenerate ? "generate" : "optimise"},
        {"family", task.family}, {"reference_source", task.reference_source}};
    if (task.skill == Skill::kOptimise) line["previous_source"] = task.previous_source;
    if (i < advantages.size() && advantages[i].has_value()) line["advantage"] = *advantages[i];
    std::string text = Dump(line);
    text.pop_back();  // the closing brace
    absl::StrAppend(&lines, text, ",\"transition\":", group.transitions[i].json, "}\n");
  }
  return transitions_.Append(lines);
}

absl::Status RunLog::Sync() {
  RETURN_IF_ERROR(metrics_.Sync());
  return transitions_.Sync();
}

}  // namespace warpsmith
