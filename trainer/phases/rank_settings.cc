#include "trainer/phases/rank_settings.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "trainer/run_folder/run_identity.h"
#include "trainer/update/agreement.h"

namespace warpsmith {
namespace {

using nlohmann::json;

struct FreeKey {
  std::string_view key;
  std::string_view reason;
};

// The keys whose values may differ between the ranks of a run.
constexpr FreeKey kFreeKeys[] = {
    {"run.directory", "rank 0 writes there; the others verify the checkpoint that it names"},
    {"data.tokenizer", "a path: its content is compared"},
    {"data.prompts", "a path: its content is compared"},
    {"data.train", "a path: its content is compared"},
    {"data.optimise", "a path: its content is compared"},
    {"data.cold_start", "a path: its content is compared"},
    {"data.cold_start_validation", "a path: its content is compared"},
    {"data.held_out", "a path: its content is compared"},
    {"data.unseen_operator", "a path: its content is compared"},
    {"trainer.num_threads", "hosts have other numbers of cores, and the result does not depend on it"},
    {"trainer.num_processes", "only warpsmith up reads it"},
    {"trainer.publish_directory", "only rank 0 publishes"},
    {"trainer.rollout_addresses", "only rank 0 calls the workers"},
};

// Words for one rank that differs, and for several.
constexpr size_t kDifferencesMax = 6;
constexpr size_t kRanksMax = 3;

const char* NameOf(RunMode mode) {
  constexpr const char* kNames[] = {"train", "cold_start", "eval", "export"};  // in the order of RunMode
  return kNames[static_cast<int>(mode)];
}

bool MayDiffer(std::string_view key) {
  return std::any_of(std::begin(kFreeKeys), std::end(kFreeKeys),
                     [key](const FreeKey& free) { return free.key == key; });
}

absl::Status AddContent(const std::string& key, const std::filesystem::path& path, RankSettings& settings) {
  ASSIGN_OR_RETURN(settings[key], ContentDigest(key, path));
  return absl::OkStatus();
}

std::string ValueOf(const RankSettings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string("not set") : Escape(found->second, 100);
}

// "trainer.weight_decay is 0.5, on rank 0 it is 0; ...".
std::string Differences(const RankSettings& rank, const RankSettings& rank_0) {
  std::set<std::string> keys;
  for (const auto* settings : {&rank, &rank_0}) {
    for (const auto& [key, value] : *settings) keys.insert(key);
  }
  std::vector<std::string> texts;
  for (const std::string& key : keys) {
    const std::string here = ValueOf(rank, key), there = ValueOf(rank_0, key);
    if (here != there) texts.push_back(absl::StrCat(key, " is ", here, ", on rank 0 it is ", there));
  }
  if (texts.size() > kDifferencesMax) {
    const std::string more = absl::StrCat("and ", texts.size() - kDifferencesMax, " more");
    texts.resize(kDifferencesMax);
    texts.push_back(more);
  }
  return absl::StrJoin(texts, "; ");
}

}  // namespace

absl::StatusOr<RankSettings> SettingsOf(const Configuration& configuration, const TrainingOptions& options,
                                        const Prompts& prompts) {
  const DataSection& data = configuration.data;
  // The model's sizes and the content of data files.
  ASSIGN_OR_RETURN(RankSettings settings, IdentifyRun(configuration, prompts.sha256()));
  for (const auto& [key, value] : configuration.values) {
    if (!MayDiffer(key) && !absl::StartsWith(key, "model.")) settings.emplace(key, value);
  }
  // File by file instead of the digest of all.
  settings.erase(kPromptsKey);
  RETURN_IF_ERROR(AddContent("data.tokenizer/tokenizer.json", data.tokenizer / "tokenizer.json", settings));
  for (const char* const name : {"generate.txt", "optimise.txt"}) {
    RETURN_IF_ERROR(AddContent(absl::StrCat("data.prompts/", name), data.prompts / name, settings));
  }
  settings["model.path and data.tokenizer: the list of tokens that end a text"] =
      absl::StrJoin(prompts.stop_token_ids(), " ");
  settings["--mode"] = NameOf(options.mode);
  settings["--dry-run"] = options.dry_run ? "true" : "false";
  return settings;
}

absl::Status CompareOverRanks(ControlPlane& control, const absl::StatusOr<RankSettings>& own) {
  RETURN_IF_ERROR(ShareStatus(control, own.status()));
  if (control.size() == 1) return absl::OkStatus();
  const std::string text = json(*own).dump(-1, ' ', false, json::error_handler_t::replace);
  // Mostly all are equal, and a digest tells.
  ASSIGN_OR_RETURN(const std::vector<std::string> digests, control.AllGather(Sha256Hex(text), "settings"));
  if (std::all_of(digests.begin(), digests.end(), [&](const auto& one) { return one == digests[0]; })) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, control.AllGather(text, "settings that differ"));
  std::vector<RankSettings> by_rank;
  for (const std::string& one : texts) by_rank.push_back(json::parse(one).get<RankSettings>());
  return absl::FailedPreconditionError(
      absl::StrCat("the ranks of this run would not make the same update: ", DescribeDifferences(by_rank),
                   "; start all ranks with the same configuration and files"));
}

std::string DescribeDifferences(const std::vector<RankSettings>& by_rank) {
  std::vector<std::string> texts;
  size_t num_others = 0;
  for (size_t rank = 1; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] == by_rank[0]) continue;
    if (texts.size() == kRanksMax) {
      ++num_others;
    } else {
      texts.push_back(absl::StrCat("on rank ", rank, ", ", Differences(by_rank[rank], by_rank[0])));
    }
  }
  if (num_others > 0) texts.push_back(absl::StrCat("and ", num_others, " more ranks differ"));
  return absl::StrJoin(texts, "; ");
}

}  // namespace warpsmith
