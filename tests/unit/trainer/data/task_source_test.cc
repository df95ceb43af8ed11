#include "trainer/data/task_source.h"

#include <algorithm>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

std::vector<Task> TasksNamed(const std::vector<std::string>& ids) {
  std::vector<Task> tasks;
  for (const std::string& id : ids) tasks.push_back({.id = id});
  return tasks;
}

std::vector<std::string> Draw(TaskRounds& source, int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(source.Next().id);
  return ids;
}

using Load = absl::StatusOr<std::vector<Task>> (*)(const std::filesystem::path&, const std::string&);

absl::StatusOr<std::vector<Task>> LoadText(const std::string& text, Load load = LoadTasks) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "tasks.jsonl";
  std::ofstream(path) << text;
  return load(path, "cpp");
}

// A line as the importers write it, with one field replaced; null takes it out.
std::string OptimiseLine(const std::string& key = "", const nlohmann::json& value = nullptr) {
  nlohmann::json line = {
      {"id", "x#1"},
      {"skill", "optimise"},
      {"language", "cpp"},
      {"family", "level1"},
      {"operators", nlohmann::json::array({"relu"})},
      {"reference_source", "r"},
      {"allowed_libraries", nlohmann::json::array()},
      {"split", "optimise"},
      {"previous_source", "p"},
      {"feedback",
       {{"finding", "memory bound"}, {"evidence", "3 passes"}, {"advice", "avoid the temporary"}}}};
  if (!key.empty()) line[key] = value;
  if (!key.empty() && value.is_null()) line.erase(key);
  return line.dump() + "\n";
}

nlohmann::json FeedbackWith(const std::string& key, const nlohmann::json& value) {
  nlohmann::json feedback = nlohmann::json::parse(OptimiseLine()).at("feedback");
  feedback[key] = value;
  return feedback;
}

bool Says(const absl::Status& status, const std::string& text) {
  return absl::IsInvalidArgument(status) && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("every pass has every task once, in another order") {
  TaskRounds source(TasksNamed({"a", "b", "c", "d", "e", "f", "g", "h"}), 5);
  auto first = Draw(source, 8), second = Draw(source, 8);
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == second);
}

TEST_CASE("a window is drawn several times before the next, and a round has every task as often") {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f", "g"};
  TaskRounds source(TasksNamed(names), 5, {.num_tasks = 3, .num_passes = 2});
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
  TaskRounds whole(TasksNamed({"a", "b", "c", "d", "e", "f", "g"}), 5, window);
  const auto ids = Draw(whole, 40);
  for (size_t cursor = 0; cursor < ids.size(); ++cursor) {
    TaskRounds resumed(TasksNamed({"a", "b", "c", "d", "e", "f", "g"}), 5, window);
    resumed.set_cursor(cursor);
    CHECK(resumed.Next().id == ids[cursor]);
  }
}

TEST_CASE("a source set to a cursor goes on as the one that was there") {
  TaskRounds whole(TasksNamed({"a", "b", "c"}), 5), resumed(TasksNamed({"a", "b", "c"}), 5);
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

TEST_CASE("a line may say its device, and one that is none is refused") {
  CHECK(LoadText(R"({"id": "x", "reference_source": "r"})")->front().device.empty());
  CHECK(LoadText(R"({"id": "x", "reference_source": "r", "device": "cuda"})")->front().device == "cuda");
  CHECK(LoadText(OptimiseLine("device", "cpu"), LoadOptimiseTasks)->front().device == "cpu");
  CHECK(Says(LoadText(R"({"id": "x", "reference_source": "r", "device": "gpu"})").status(),
             ":1: the device \"gpu\" is not known: cpu or cuda"));
}

TEST_CASE("tasks of skill 2 are read with what was said of their previous programs") {
  const auto tasks = LoadText(OptimiseLine() + OptimiseLine("id", "x#2"), LoadOptimiseTasks);
  INFO(tasks.status().ToString());
  REQUIRE(tasks.ok());
  REQUIRE(tasks->size() == 2);
  const Task& task = tasks->front();
  CHECK(task.skill == Skill::kOptimise);
  CHECK(task.language == "cpp");
  CHECK(task.reference_source == "r");
  CHECK(task.previous_source == "p");
  CHECK(task.feedback.finding == "memory bound");
  CHECK(task.feedback.evidence == "3 passes");
  CHECK(task.feedback.advice == 10);  // ADVICE_AVOID_TEMPORARY
  CHECK(task.previous_reward == 0);
}

TEST_CASE("a task whose advice is none of the list is refused with the words of prompts") {
  const absl::Status status =
      LoadText(OptimiseLine("feedback", FeedbackWith("advice", "avoid temporary")), LoadOptimiseTasks)
          .status();
  CHECK(Says(status, "the advice \"avoid temporary\" is none of: fix compile error, "));
  CHECK(Says(status, "avoid the temporary, "));
}

TEST_CASE("a malformed task of skill 2 is refused with file, line and what is wrong") {
  const auto says = [](const std::string& key, const nlohmann::json& value, const std::string& text) {
    const absl::Status status =
        LoadText(OptimiseLine() + OptimiseLine(key, value), LoadOptimiseTasks).status();
    INFO(key << ": " << status.ToString());
    return Says(status, "tasks.jsonl:2: " + text);
  };
  CHECK(says("id", "x#1", "task id \"x#1\" appears twice"));
  CHECK(says("id", nullptr, "\"id\" must be a string"));
  CHECK(says("reference_source", 3, "\"reference_source\" must be a string"));
  CHECK(says("previous_source", nullptr, "\"previous_source\" must be a string"));
  CHECK(says("previous_source", " \n", "\"previous_source\" is empty"));
  CHECK(says("feedback", nullptr, "\"feedback\" must be an object"));
  CHECK(says("feedback", "tile", "\"feedback\" must be an object"));
  CHECK(says("feedback", FeedbackWith("evidence", nullptr), "feedback: \"evidence\" must be a string"));
  CHECK(says("feedback", FeedbackWith("advice", "think harder"),
             "feedback: the advice \"think harder\" is none of: fix compile error, "));
  CHECK(says("skill", nullptr, "a task of the skill \"generate\" in a file of \"optimise\""));
  CHECK(says("language", "kernelbench_python",
             "a task in \"kernelbench_python\" where data.language is \"cpp\""));
  CHECK(Says(LoadText("", LoadOptimiseTasks).status(), "no task"));
}

TEST_CASE("tasks of skill 2 are not taken for those of skill 1") {
  CHECK(Says(LoadText(OptimiseLine()).status(), ":1: a task of the skill \"optimise\""));
}

TEST_CASE("a malformed task file is refused with its line") {
  CHECK(Says(LoadText("").status(), "no task"));
  CHECK(Says(LoadText("{\"id\": \"x\"}\n").status(), ":1: \"reference_source\" must be a string"));
  CHECK(Says(LoadText("\n[1]\n").status(), ":2: not a JSON object"));
  const std::string line = "{\"id\": \"x\", \"reference_source\": \"r\"}\n";
  CHECK(Says(LoadText(line + line).status(), ":2: task id \"x\" appears twice"));
}

}  // namespace warpsmith
