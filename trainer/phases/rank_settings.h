// Compares over the ranks of a run what decides the update, before any of them does anything.
#ifndef WARPSMITH_TRAINER_PHASES_RANK_SETTINGS_H_
#define WARPSMITH_TRAINER_PHASES_RANK_SETTINGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/distributed/control_plane.h"
#include "prompting/prompts.h"
#include "trainer/configuration.h"
#include "trainer/phases/training.h"

namespace warpsmith {

// Configuration key, or what else is compared, to its value; of content the SHA-256.
using RankSettings = std::map<std::string, std::string>;

// Returns every key of the trainer's own sections but those that may differ between ranks, and the content of the data
// files, prompts and tokenizer. Errors: those of IdentifyRun.
absl::StatusOr<RankSettings> SettingsOf(const Configuration& configuration, const TrainingOptions& options,
                                        const Prompts& prompts);

// Compares the settings of all ranks of `control`; all of them call it. FAILED_PRECONDITION on every rank where any
// rank differs from rank 0, naming ranks and keys with both values. An error in `own` ends all ranks.
absl::Status CompareOverRanks(ControlPlane& control, const absl::StatusOr<RankSettings>& own);

// Returns how the others differ from the first, by rank; empty where none does.
std::string DescribeDifferences(const std::vector<RankSettings>& by_rank);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_RANK_SETTINGS_H_
