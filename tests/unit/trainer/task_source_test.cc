#include "trainer/task_source.h"

#include <algorithm>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

std::vector<Task> TasksNamed(const std::vector<std::string>& ids) {
  std::vector<Task> tasks;
  for (const std::string& id : ids) tasks.push_back({.id = id});
  return tasks;
}

std::vector<std::string> Draw(TaskSource& source, int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(source.Next().id);
  return ids;
}

absl::StatusOr<std::vector<Task>> LoadText(const std::string& text) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "tasks.jsonl";
  std::ofstream(path) << text;
  return LoadTasks(path, "cpp");
}

bool Says(const absl::Status& status, const std::string& text) {
  return absl::IsInvalidArgument(status) && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("every pass has every task once, in another order") {
  TaskSource source(TasksNamed({"a", "b", "c", "d", "e", "f", "g", "h"}), 5);
  auto first = Draw(source, 8), second = Draw(source, 8);
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == second);
}

TEST_CASE("a window is drawn several times before the next, and a round has every task as often") {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f", "g"};
  TaskSource source(TasksNamed(names), 5, {.num_tasks = 3, .num_passes = 2});
  const auto ids = Draw(source, 14);
  const auto sorted = [&](size_t first, size_t count) {
    std::vector<std::string> some(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                  ids.begin() + static_cast<std::ptrdiff_t>(first + count));
    std::sort(some.begin(), some.end());
    return some;
  };
  CHECK(sorted(0, 3) == sorted(3, 3));
  CHECK(sorted(6, 3) == sorted(9, 3));
  CHECK(sorted(12, 1) == sorted(13, 1));  // the last window is smaller
  std::vector<std::string> twice;
  for (const std::string& name : names) twice.insert(twice.end(), 2, name);
  CHECK(sorted(0, 14) == twice);
  CHECK(Draw(source, 14) != ids);
}

TEST_CASE("a source with windows resumes at any cursor") {
  const TaskWindow window{.num_tasks = 3, .num_passes = 2};
  TaskSource whole(TasksNamed({"a", "b", "c", "d", "e", "f", "g"}), 5, window);
  const auto ids = Draw(whole, 40);
  for (size_t cursor = 0; cursor < ids.size(); ++cursor) {
    TaskSource resumed(TasksNamed({"a", "b", "c", "d", "e", "f", "g"}), 5, window);
    resumed.set_cursor(cursor);
    CHECK(resumed.Next().id == ids[cursor]);
  }
}

TEST_CASE("a source set to a cursor goes on as the one that was there") {
  TaskSource whole(TasksNamed({"a", "b", "c"}), 5), resumed(TasksNamed({"a", "b", "c"}), 5);
  Draw(whole, 4);
  resumed.set_cursor(4);
  CHECK(Draw(whole, 5) == Draw(resumed, 5));
  CHECK(resumed.cursor() == 9);
}

TEST_CASE("tasks are read with their family and libraries") {
  const auto tasks =
      LoadText(R"({"id": "x", "reference_source": "r", "family": "f", "allowed_libraries": ["blas"]})");
  REQUIRE(tasks.ok());
  CHECK(tasks->front().family == "f");
  CHECK(tasks->front().allowed_libraries == std::vector<std::string>{"blas"});
}

TEST_CASE("a malformed task file is refused with its line") {
  CHECK(Says(LoadText("").status(), "no task"));
  CHECK(Says(LoadText("{\"id\": \"x\"}\n").status(), ":1: \"reference_source\" must be a string"));
  CHECK(Says(LoadText("\n[1]\n").status(), ":2: not a JSON object"));
  const std::string line = "{\"id\": \"x\", \"reference_source\": \"r\"}\n";
  CHECK(Says(LoadText(line + line).status(), ":2: task id \"x\" appears twice"));
}

}  // namespace warpsmith
