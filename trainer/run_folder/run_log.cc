#include "trainer/run_folder/run_log.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

constexpr char kMetricsFile[] = "metrics.jsonl";

// Text of others may hold invalid UTF-8, which JSON cannot.
std::string Dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string ScalarName(const std::string& phase, const std::string& name) {
  return absl::StrCat(phase, "/", name);
}

// Reads back what WriteMetrics wrote as the lines of `path`; a line that it did not write says nothing.
absl::StatusOr<std::vector<ScalarEvent>> EventsOf(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<ScalarEvent> events;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const auto json =
        nlohmann::ordered_json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const std::string phase = json.value("phase", "");
    ScalarEvent& event = events.emplace_back(ScalarEvent{.step = json.value("step", int64_t{0})});
    for (const auto& [name, value] : json.items()) {
      if (name != "step" && value.is_number()) event.scalars.emplace_back(ScalarName(phase, name), value);
    }
  }
  return events;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const std::filesystem::path& directory,
                                                     const RunProgress& progress) {
  ASSIGN_OR_RETURN(AppendFile metrics, AppendFile::Open(directory / kMetricsFile, progress.metrics_bytes));
  ASSIGN_OR_RETURN(AppendFile transitions,
                   AppendFile::Open(directory / "transitions.jsonl", progress.transitions_bytes));
  const std::filesystem::path events_directory = directory / "tensorboard";
  std::error_code error;
  std::filesystem::create_directories(events_directory, error);
  if (error)
    return absl::InternalError(
        absl::StrCat("cannot make ", events_directory.string(), ": ", error.message()));
  ASSIGN_OR_RETURN(const std::vector<ScalarEvent> former, EventsOf(directory / kMetricsFile));
  ASSIGN_OR_RETURN(TensorboardWriter events,
                   TensorboardWriter::Create(events_directory, absl::Now(), former));
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
      scalars.emplace_back(ScalarName(phase, name), value);
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
