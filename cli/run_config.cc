#include "cli/run_config.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/config/config_file.h"

namespace warpsmith {
namespace {

constexpr int kTrainersMax = 64;

// All sections of a run, whoever reads them.
std::vector<std::string> KnownSections() {
  return {"run", "model", "data", "trainer", "rollout", "reward_service"};
}

}  // namespace

absl::StatusOr<RunConfig> ReadRunConfig(const std::filesystem::path& path,
                                        const std::vector<std::string>& assignments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(path, KnownSections(), assignments));
  std::string name = "run";
  std::string directory;
  int64_t num_trainers = 1;
  file->Section("run").Read("name", &name);
  file->Section("run").Read("directory", &directory);
  file->Section("trainer").Read("num_processes", &num_trainers);
  if (num_trainers < 1 || num_trainers > kTrainersMax) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": trainer.num_processes is ", num_trainers,
                                                   "; use 1 to ", kTrainersMax));
  }
  if (directory.empty()) directory = absl::StrCat("runs/", name);
  return RunConfig{.run_directory = directory, .num_trainers = static_cast<int>(num_trainers)};
}

}  // namespace warpsmith
