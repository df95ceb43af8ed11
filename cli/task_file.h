// A task of a task file, the JSONL that importers write and `data.train` names.
#ifndef WARPSMITH_CLI_TASK_FILE_H_
#define WARPSMITH_CLI_TASK_FILE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// "train.jsonl#relu_1": a task by its id, which is what records, reports and messages name it by; line numbers
// move. The id may have further "#".
struct TaskAddress {
  std::filesystem::path path;
  std::string id;  // empty where the text names none
};

// Nothing for a text that names no .jsonl file.
std::optional<TaskAddress> ParseTaskAddress(const std::string& text);

// The skill-1 task at `address`, in `language` unless its line says one. INVALID_ARGUMENT names file and line of
// what is no task, of another skill or language, or for a device that is none; NOT_FOUND has the nearest id, or some
// ids where the address has none.
absl::StatusOr<v1::Task> ReadTaskLine(const TaskAddress& address, v1::CandidateLanguage language);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_TASK_FILE_H_
