// Any file is tasks, pairs, or an error that names the place; tasks can be drawn in rounds.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/unique_fd.h"
#include "tests/fuzz/fuzz_input.h"
#include "trainer/data/cold_start_data.h"
#include "trainer/data/task_source.h"

namespace warpsmith {
namespace {

void CheckRefusal(const absl::Status& status, const std::string& path) {
  WS_CHECK(absl::IsInvalidArgument(status)) << status;
  WS_CHECK(absl::StrContains(status.message(), path)) << status;
}

void DrawTasks(std::vector<Task> tasks) {
  const size_t num_tasks = tasks.size();
  TaskRounds source(std::move(tasks), /*seed=*/1, {.num_tasks = 2, .num_passes = 2});
  for (size_t i = 0; i < 2 * num_tasks + 1; ++i) WS_CHECK(!source.Next().language.empty());
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const warpsmith::UniqueFd file(memfd_create("lines", MFD_CLOEXEC));
  WS_CHECK(write(file.get(), bytes, num_bytes) == static_cast<ssize_t>(num_bytes));
  const std::string path = absl::StrCat("/proc/self/fd/", file.get());
  auto tasks = warpsmith::LoadTasks(path, "cpp");
  if (tasks.ok()) {
    warpsmith::DrawTasks(*std::move(tasks));
  } else {
    warpsmith::CheckRefusal(tasks.status(), path);
  }
  const auto pairs = warpsmith::LoadColdStartPairs(path);
  if (!pairs.ok()) warpsmith::CheckRefusal(pairs.status(), path);
  return 0;
}
