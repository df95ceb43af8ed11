// What makes a run the run that it is: another value of any of these, and a checkpoint belongs to
// another run.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_RUN_IDENTITY_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_RUN_IDENTITY_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/configuration.h"

namespace warpsmith {

// Configuration key to value; of a data file the SHA-256 of its content, so that it may move. What
// only says how long or how fast a run learns is left out: such keys may change when it goes on.
using RunIdentity = std::map<std::string, std::string>;

inline constexpr char kFormulaKey[] = "trainer.grpo.formula";
inline constexpr char kPromptsKey[] = "data.prompts and data.tokenizer";

// Returns "sha256:" and the digest of the file's content; "none" for an empty path. The errors of ReadFile, with `key`.
absl::StatusOr<std::string> ContentDigest(const std::string& key, const std::filesystem::path& path);

// Reads all data files of `configuration`. Without kFormulaKey where that is left to the reward service. The
// errors of ReadFile, with the key.
absl::StatusOr<RunIdentity> IdentifyRun(const Configuration& configuration, std::string_view prompts_sha256);

// FAILED_PRECONDITION listing the keys of `present` that start with `prefix` and have another value
// in `checkpoint`. Keys that `checkpoint` lacks are not compared: one written before there were
// identities has none; nor is a formula of which it says only that the reward service chose it.
absl::Status CompareIdentities(const RunIdentity& present, const RunIdentity& checkpoint,
                               std::string_view prefix = "");

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_RUN_IDENTITY_H_
