#include "trainer/data/task_source.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/status_macros.h"
#include "proto/advice_words.h"
#include "proto/device_names.h"
#include "trainer/data/json_lines.h"

namespace warpsmith {
namespace {

using ParseLine = absl::StatusOr<Task> (*)(const JsonLine& line, const std::string& language);

// "generate" where a line says nothing, as generated files do.
absl::Status CheckKind(const JsonLine& line, const std::string& skill, const std::string& language) {
  const std::string has_skill = line.TextOr("skill", "generate");
  if (has_skill != skill) {
    return line.Error(absl::StrCat("a task of the skill \"", has_skill, "\" in a file of \"", skill,
                                   "\"; name the file as ",
                                   has_skill == "optimise" ? "data.optimise" : "data.train"));
  }
  const std::string has_language = line.TextOr("language", language);
  if (has_language == language) return absl::OkStatus();
  return line.Error(
      absl::StrCat("a task in \"", has_language, "\" where data.language is \"", language, "\""));
}

absl::StatusOr<Task> ParseParts(const JsonLine& line, const std::string& language) {
  Task task{.language = language};
  ASSIGN_OR_RETURN(task.id, line.Text("id"));
  ASSIGN_OR_RETURN(task.reference_source, line.Text("reference_source"));
  task.family = line.TextOr("family", "");
  task.device = line.TextOr("device", "");
  if (!task.device.empty() && DeviceOfName(task.device) == 0) {
    return line.Error(absl::StrCat("the device \"", task.device, "\" is not known: ", AllDeviceNames()));
  }
  ASSIGN_OR_RETURN(task.allowed_libraries, line.TextsOr("allowed_libraries", {}));
  return task;
}

absl::StatusOr<Task> ParseTask(const JsonLine& line, const std::string& language) {
  RETURN_IF_ERROR(CheckKind(line, "generate", language));
  return ParseParts(line, language);
}

absl::StatusOr<Feedback> ParseFeedback(const JsonLine& line) {
  ASSIGN_OR_RETURN(const JsonLine parts, line.Object("feedback"));
  Feedback feedback;
  ASSIGN_OR_RETURN(feedback.finding, parts.Text("finding"));
  ASSIGN_OR_RETURN(feedback.evidence, parts.Text("evidence"));
  ASSIGN_OR_RETURN(const std::string advice, parts.Text("advice"));
  feedback.advice = AdviceOfWords(advice);
  if (feedback.advice != 0) return feedback;
  return parts.Error(absl::StrCat("the advice \"", advice, "\" is none of: ", AllAdviceWords()));
}

absl::StatusOr<Task> ParseOptimiseTask(const JsonLine& line, const std::string& language) {
  RETURN_IF_ERROR(CheckKind(line, "optimise", language));
  ASSIGN_OR_RETURN(Task task, ParseParts(line, language));
  task.skill = Skill::kOptimise;
  ASSIGN_OR_RETURN(task.previous_source, line.Text("previous_source"));
  if (absl::StripAsciiWhitespace(task.previous_source).empty()) {
    return line.Error("\"previous_source\" is empty: there is nothing to optimise");
  }
  ASSIGN_OR_RETURN(task.feedback, ParseFeedback(line));
  return task;
}

absl::StatusOr<std::vector<Task>> Load(const std::filesystem::path& path, const std::string& language,
                                       ParseLine parse) {
  ASSIGN_OR_RETURN(const std::vector<JsonLine> lines, ReadJsonLines(path));
  std::vector<Task> tasks;
  std::set<std::string> ids;
  for (const JsonLine& line : lines) {
    ASSIGN_OR_RETURN(Task task, parse(line, language));
    if (!ids.insert(task.id).second)
      return line.Error(absl::StrCat("task id \"", task.id, "\" appears twice"));
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) return absl::InvalidArgumentError(absl::StrCat("no task in ", path.string()));
  return tasks;
}

}  // namespace

absl::StatusOr<std::vector<Task>> LoadTasks(const std::filesystem::path& path, const std::string& language) {
  return Load(path, language, ParseTask);
}

absl::StatusOr<std::vector<Task>> LoadOptimiseTasks(const std::filesystem::path& path,
                                                    const std::string& language) {
  return Load(path, language, ParseOptimiseTask);
}

TaskRounds::TaskRounds(std::vector<Task> tasks, uint64_t seed, TaskWindow window)
    : tasks_(std::move(tasks)), seed_(seed), window_(window) {
  WS_CHECK(!tasks_.empty());
  WS_CHECK(window_.num_passes >= 1) << "num_passes " << window_.num_passes;
  BeginPass();
}

const Task& TaskRounds::Next() {
  if (cursor_ == pass_begin_ + order_.size()) BeginPass();
  return tasks_[order_[cursor_++ - pass_begin_]];
}

void TaskRounds::set_cursor(uint64_t cursor) {
  cursor_ = cursor;
  BeginPass();
}

// Everything follows from the cursor, so a resumed source needs nothing else.
void TaskRounds::BeginPass() {
  const uint64_t num_tasks = tasks_.size(), num_passes = static_cast<uint64_t>(window_.num_passes);
  const uint64_t width =
      window_.num_tasks > 0 ? std::min(static_cast<uint64_t>(window_.num_tasks), num_tasks) : num_tasks;
  const uint64_t round = cursor_ / (num_tasks * num_passes);
  const uint64_t in_round = cursor_ % (num_tasks * num_passes);
  const uint64_t first = in_round / (width * num_passes) * width;  // of the window, in the round's order
  const uint64_t size = std::min(width, num_tasks - first);        // the last window may be smaller
  pass_begin_ = cursor_ - (in_round - first * num_passes) % size;
  const uint64_t round_seed = UniformWord(seed_, round);
  const std::vector<uint32_t> round_order = SeededPermutation(num_tasks, round_seed);
  order_ = SeededPermutation(size, UniformWord(round_seed, pass_begin_));
  for (uint32_t& index : order_) index = round_order[first + index];
}

std::vector<uint32_t> SeededPermutation(size_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[UniformWord(seed, i) % i]);  // Fisher-Yates
  return order;
}

}  // namespace warpsmith
