#include "tests/bench/reward_candidates.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace warpsmith {
namespace {

struct TaskPrograms {
  std::string id;
  std::string reference;
  std::vector<std::string> answers;
};

std::string Fenced(const std::string& program) { return absl::StrCat("```cpp\n", program, "\n```"); }

void AddOnce(const std::string& answer, std::vector<std::string>* answers) {
  if (std::find(answers->begin(), answers->end(), answer) == answers->end()) answers->push_back(answer);
}

// The tasks in the order of the file, each with all programs that follow each other there.
absl::StatusOr<std::vector<TaskPrograms>> ReadTasks(const std::filesystem::path& path, size_t num_tasks) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path.string(), ": ./dev makes it"));
  std::vector<TaskPrograms> tasks;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object())
      return absl::DataLossError(absl::StrCat(path.string(), " has a line that is not JSON"));
    const std::string reference = entry.value("reference_source", "");
    if (tasks.empty() || tasks.back().reference != reference) {
      if (tasks.size() == num_tasks) return tasks;
      tasks.push_back({entry.value("task_id", ""), reference, {}});
    }
    AddOnce(entry.value("answer", ""), &tasks.back().answers);
    if (const std::string previous = entry.value("previous_source", ""); !previous.empty()) {
      AddOnce(Fenced(previous), &tasks.back().answers);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path.string(), " has ", tasks.size(), " tasks, the benchmark wants ", num_tasks));
}

// The answer with one more, unused, constant in its program: another text, the same work.
std::string Variant(const std::string& answer, int index) {
  const size_t fence = answer.rfind("```");
  return absl::StrCat(answer.substr(0, fence), "static const int variant_", index, " = ", index, ";\n```");
}

v1::GradeRequest MakeRequest(v1::CandidateLanguage language, const std::string& task_id,
                             const std::string& reference, const std::string& answer, const std::string& id) {
  v1::GradeRequest request;
  request.set_request_id(id);
  request.mutable_task()->set_id(task_id);
  request.mutable_task()->set_skill(v1::SKILL_GENERATE);
  request.mutable_task()->set_language(language);
  request.mutable_task()->set_reference_source(reference);
  request.mutable_candidate()->set_language(language);
  request.mutable_candidate()->set_answer(answer);
  return request;
}

}  // namespace

absl::StatusOr<std::vector<v1::GradeRequest>> MakeRewardCandidates(const std::filesystem::path& cold_start,
                                                                   int num_candidates,
                                                                   int candidates_per_task,
                                                                   const std::string& prefix) {
  const size_t num_tasks =
      static_cast<size_t>((num_candidates + candidates_per_task - 1) / candidates_per_task);
  const absl::StatusOr<std::vector<TaskPrograms>> tasks = ReadTasks(cold_start, num_tasks);
  if (!tasks.ok()) return tasks.status();
  std::vector<v1::GradeRequest> requests;
  for (const TaskPrograms& task : *tasks) {
    for (int i = 0; i < candidates_per_task && static_cast<int>(requests.size()) < num_candidates; ++i) {
      const int num_answers = static_cast<int>(task.answers.size());
      const std::string& answer = task.answers[static_cast<size_t>(i % num_answers)];
      const std::string id = absl::StrCat(prefix, requests.size());
      requests.push_back(MakeRequest(v1::CANDIDATE_LANGUAGE_CPP, task.id, task.reference,
                                     i < num_answers ? answer : Variant(answer, i), id));
    }
  }
  return requests;
}

absl::StatusOr<std::vector<v1::GradeRequest>> ReadAnswers(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path.string()));
  std::vector<v1::GradeRequest> requests;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object())
      return absl::DataLossError(absl::StrCat(path.string(), " has a line that is not JSON"));
    const std::string name = entry.value("name", "");
    requests.push_back(MakeRequest(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON, name,
                                   entry.value("reference", ""),
                                   absl::StrCat("```python\n", entry.value("answer", ""), "\n```"), name));
  }
  if (requests.empty()) return absl::InvalidArgumentError(absl::StrCat(path.string(), " has no answer"));
  return requests;
}

}  // namespace warpsmith
