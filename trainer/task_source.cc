#include "trainer/task_source.h"

#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/status_macros.h"
#include "trainer/json_lines.h"

namespace warpsmith {
namespace {

absl::StatusOr<Task> ParseTask(const JsonLine& line, const std::string& language) {
  Task task{.language = language};
  ASSIGN_OR_RETURN(task.id, line.Text("id"));
  ASSIGN_OR_RETURN(task.reference_source, line.Text("reference_source"));
  task.family = line.TextOr("family", "");
  ASSIGN_OR_RETURN(task.allowed_libraries, line.TextsOr("allowed_libraries", {}));
  return task;
}

}  // namespace

absl::StatusOr<std::vector<Task>> LoadTasks(const std::filesystem::path& path, const std::string& language) {
  ASSIGN_OR_RETURN(const std::vector<JsonLine> lines, ReadJsonLines(path));
  std::vector<Task> tasks;
  std::set<std::string> ids;
  for (const JsonLine& line : lines) {
    ASSIGN_OR_RETURN(Task task, ParseTask(line, language));
    if (!ids.insert(task.id).second)
      return line.Error(absl::StrCat("task id \"", task.id, "\" appears twice"));
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) return absl::InvalidArgumentError(absl::StrCat("no task in ", path.string()));
  return tasks;
}

TaskSource::TaskSource(std::vector<Task> tasks, uint64_t seed) : tasks_(std::move(tasks)), seed_(seed) {
  WS_CHECK(!tasks_.empty());
  ShuffleFor(0);
}

const Task& TaskSource::Next() {
  const uint64_t pass = cursor_ / tasks_.size();
  if (pass != pass_) ShuffleFor(pass);
  return tasks_[order_[cursor_++ % tasks_.size()]];
}

void TaskSource::set_cursor(uint64_t cursor) {
  cursor_ = cursor;
  ShuffleFor(cursor_ / tasks_.size());
}

void TaskSource::ShuffleFor(uint64_t pass) {
  pass_ = pass;
  order_ = SeededPermutation(tasks_.size(), UniformWord(seed_, pass));
}

std::vector<uint32_t> SeededPermutation(size_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[UniformWord(seed, i) % i]);  // Fisher-Yates
  return order;
}

}  // namespace warpsmith
