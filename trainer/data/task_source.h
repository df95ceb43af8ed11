// Tasks of a dataset in a seeded order, with a cursor that survives a restart.
#ifndef WARPSMITH_TRAINER_DATA_TASK_SOURCE_H_
#define WARPSMITH_TRAINER_DATA_TASK_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/data/transition.h"

namespace warpsmith {

// The skill-1 tasks of a JSONL file: a line a task with "id", "reference_source" and optionally "family",
// "allowed_libraries" and "device"; other fields are ignored. INVALID_ARGUMENT names file and line of a malformed or
// repeated task, of one of another "skill", or of one whose "language", where it says one, is not `language`;
// and an empty file. The order is that of the file.
absl::StatusOr<std::vector<Task>> LoadTasks(const std::filesystem::path& path, const std::string& language);

// The same for tasks of skill 2, which say so ("skill": "optimise") and have "previous_source" and "feedback"
// {"finding", "evidence", "advice"} beside the rest. The advice is one of the closed list, in words. Nobody
// graded the previous program, so its reward is 0.
absl::StatusOr<std::vector<Task>> LoadOptimiseTasks(const std::filesystem::path& path,
                                                    const std::string& language);

// How soon a task comes back. Making one ready costs a referee about a second of a core, and it keeps some
// tens.
struct TaskWindow {
  int64_t num_tasks = 0;   // that are drawn again and again before the next; 0: all
  int64_t num_passes = 1;  // over them
};

// Endless rounds over a task list, each in a new order, window by window, with several passes over each
// window.
class TaskRounds {
 public:
  // `tasks` is not empty, window.num_passes at least 1.
  TaskRounds(std::vector<Task> tasks, uint64_t seed, TaskWindow window = {});

  // The task at the cursor, which moves on.
  const Task& Next();

  // Tasks drawn since the start of the run; setting it continues from there.
  uint64_t cursor() const { return cursor_; }
  void set_cursor(uint64_t cursor);

 private:
  void BeginPass();

  const std::vector<Task> tasks_;
  const uint64_t seed_;
  const TaskWindow window_;
  uint64_t cursor_ = 0;
  uint64_t pass_begin_ = 0;      // the cursor at the beginning of the present pass
  std::vector<uint32_t> order_;  // of that pass: indices into tasks_
};

// A permutation of 0 .. count - 1 that follows from `seed` alone.
std::vector<uint32_t> SeededPermutation(size_t count, uint64_t seed);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_TASK_SOURCE_H_
