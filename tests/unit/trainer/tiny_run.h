// Everything that a phase of a run shares with the others, tiny, on one rank.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_TINY_RUN_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_TINY_RUN_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/trainer/policy_batch.h"
#include "tests/unit/trainer/tiny_trainer.h"
#include "trainer/phases/run_context.h"

namespace warpsmith {

// An attempt at a run in `directory`: made anew, it starts from the newest checkpoint there, as a resumed
// trainer does.
class TinyRun {
 public:
  // `configuration.model` names the shape.
  TinyRun(const std::filesystem::path& directory, Configuration configuration)
      : configuration_(std::move(configuration)),
        directory_(directory),
        prompts_(Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", "").value()),
        control_(MakeLoneControlPlane()),
        communicator_(MakeLoneCommunicator(*control_)),
        checkpoints_(directory / "checkpoints", 100, {}),
        policy_(MakeTinyTrainer(ParameterLayout(configuration_.model.config))) {
    std::filesystem::create_directories(directory);
    resumed_ = checkpoints_.Newest().value();
    if (resumed_.has_value()) Restore();
    log_ = RunLog::Open(directory, progress_).value();
  }

  RunContext context() {
    return {.configuration = configuration_,
            .prompts = prompts_,
            .control = *control_,
            .communicator = *communicator_,
            .checkpoints = checkpoints_,
            .policy = *policy_,
            .progress = progress_,
            .log = log_.get(),
            .stop = &stop,
            .start = absl::Now()};
  }

  RunProgress& progress() { return progress_; }
  ModelTrainer& policy() { return *policy_; }
  const Prompts& prompts() const { return prompts_; }
  const std::optional<std::filesystem::path>& resumed() const { return resumed_; }

  // Digest of the present weights.
  std::string Weights() { return Sha256Hex(BytesOf(policy_->HostWeights().value())); }

  // What has been logged, a JSON object a line.
  std::vector<nlohmann::json> Lines(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    const std::string text = ReadFile(directory_ / name).value();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      lines.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return lines;
  }

  // Progress of every checkpoint, oldest first.
  std::vector<RunProgress> Checkpoints() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "checkpoints")) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<RunProgress> all;
    for (const auto& path : paths) all.push_back(LoadProgress(path).value().progress);
    return all;
  }

  std::atomic<bool> stop = false;

 private:
  void Restore() {
    LoadedProgress loaded = LoadProgress(*resumed_).value();
    progress_ = std::move(loaded.progress);
    REQUIRE(LoadTraining(*resumed_, loaded.num_optimiser_steps, *policy_).ok());
  }

  const Configuration configuration_;
  const std::filesystem::path directory_;
  const Prompts prompts_;
  const std::unique_ptr<ControlPlane> control_;
  const std::unique_ptr<Communicator> communicator_;
  CheckpointStore checkpoints_;
  const std::unique_ptr<ModelTrainer> policy_;
  RunProgress progress_;
  std::optional<std::filesystem::path> resumed_;
  std::unique_ptr<RunLog> log_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_TINY_RUN_H_
