#include "trainer/run_folder/run_identity.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr char kDigestMark[] = "sha256:";
// Older checkpoints have it for the formula's name.
constexpr char kUnnamedDefault[] = "the reward service's default";

template <typename Value>
std::string AsText(Value value) {
  if constexpr (std::is_same_v<Value, bool>) return value ? "true" : "false";
  if constexpr (std::is_floating_point_v<Value>) return absl::StrFormat("%.17g", value);
  return absl::StrCat(value);
}

std::string Difference(const std::string& key, const std::string& present, const std::string& checkpoint) {
  if (absl::StartsWith(present, kDigestMark) && absl::StartsWith(checkpoint, kDigestMark)) {
    return absl::StrCat(key, " has other content");
  }
  return absl::StrCat(key, " is ", Escape(present, 100), ", there it is ", Escape(checkpoint, 100));
}

}  // namespace

absl::StatusOr<std::string> ContentDigest(const std::string& key, const std::filesystem::path& path) {
  if (path.empty()) return std::string("none");
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) {
    return absl::Status(content.status().code(), absl::StrCat(key, ": ", content.status().message()));
  }
  return kDigestMark + Sha256Hex(*content);
}

absl::StatusOr<RunIdentity> IdentifyRun(const Configuration& configuration, std::string_view prompts_sha256) {
  const DataSection& data = configuration.data;
  RunIdentity identity = {{"run.name", configuration.run.name},
                          {"run.seed", absl::StrCat(configuration.run.seed)},
                          {"data.language", data.language},
                          {kPromptsKey, kDigestMark + std::string(prompts_sha256)}};
  if (!configuration.grpo.formula.empty()) identity[kFormulaKey] = configuration.grpo.formula;
  VisitFields(configuration.model.config, [&](std::string_view key, const auto* value) {
    identity["model." + std::string(key)] = AsText(*value);
  });
  identity["model.architectures"] = ArchitectureOf(configuration.model.config);
  identity["model.rope_scaling"] = RopeScalingText(configuration.model.config.rope_scaling);
  const std::pair<std::string, const std::filesystem::path*> files[] = {
      {"data.train", &data.train},           {"data.optimise", &data.optimise},
      {"data.cold_start", &data.cold_start}, {"data.cold_start_validation", &data.cold_start_validation},
      {"data.held_out", &data.held_out},     {"data.unseen_operator", &data.unseen_operator}};
  for (const auto& [key, path] : files) {
    ASSIGN_OR_RETURN(identity[key], ContentDigest(key, *path));
  }
  return identity;
}

absl::Status CompareIdentities(const RunIdentity& present, const RunIdentity& checkpoint,
                               std::string_view prefix) {
  std::vector<std::string> differences;
  for (const auto& [key, value] : present) {
    const auto found = checkpoint.find(key);
    if (found == checkpoint.end() || found->second == value || key.compare(0, prefix.size(), prefix) != 0)
      continue;
    if (found->second == kUnnamedDefault) continue;
    differences.push_back(Difference(key, value, found->second));
  }
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(differences, "; "));
}

}  // namespace warpsmith
