#include "trainer/run_folder/checkpoint_store.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/file_manifest.h"
#include "core/checkpoint/safetensors_file.h"
#include "core/checkpoint/safetensors_writer.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

constexpr char kProgressFile[] = "progress.json";
// 1 had neither format nor identity. Raise it when an older version would misread what Save writes.
constexpr int kFormat = 2;
constexpr char kLayoutKey[] = "layout_sha256";

constexpr char kOlderBest[] = "best";  // the file of the best SFT weights in earlier versions
constexpr int64_t kElementsAtOnce = int64_t{4} << 20;

std::filesystem::path FileOf(const std::filesystem::path& checkpoint, std::string_view name) {
  return checkpoint / absl::StrCat(AbslView(name), ".safetensors");
}

absl::Status SaveBuffer(StateSet set, int buffer, ModelTrainer& trainer, const ByteSink& sink) {
  const int64_t size = trainer.layout().buffers()[buffer].size;
  std::vector<float> values(std::min(size, kElementsAtOnce));
  for (int64_t first = 0; first < size; first += kElementsAtOnce) {
    const absl::Span<float> part(values.data(), std::min(kElementsAtOnce, size - first));
    RETURN_IF_ERROR(trainer.Read(set, buffer, first, part));
    RETURN_IF_ERROR(sink(std::as_bytes(std::span(part.data(), part.size()))));
  }
  return absl::OkStatus();
}

absl::Status SaveState(const std::filesystem::path& checkpoint, StateSet set, ModelTrainer& trainer) {
  const ParameterLayout& layout = trainer.layout();
  std::vector<TensorInfo> infos;
  for (const ParameterBuffer& buffer : layout.buffers()) {
    infos.push_back({.name = buffer.name, .type = TensorType::kF32, .shape = {buffer.size}});
  }
  int index = 0;
  return WriteSafetensors(
      TensorPath(checkpoint, set), infos, {{kLayoutKey, layout.Sha256()}},
      [&](const TensorInfo&, const ByteSink& sink) { return SaveBuffer(set, index++, trainer, sink); });
}

absl::Status LoadFile(const std::filesystem::path& path, StateSet set, ModelTrainer& trainer) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const ParameterLayout& layout = trainer.layout();
  const auto written = file.metadata().find(kLayoutKey);
  if (written == file.metadata().end() || written->second != layout.Sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is of a model with another shape; see section model"));
  }
  for (int index = 0; index < layout.num_buffers(); ++index) {
    const ParameterBuffer& buffer = layout.buffers()[index];
    const TensorView* const tensor = file.Find(buffer.name);
    if (tensor == nullptr || tensor->bytes.size() != buffer.size * sizeof(float)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), " has no ", buffer.name, " of ", buffer.size, " values"));
    }
    const absl::Span<const float> values(reinterpret_cast<const float*>(tensor->bytes.data()), buffer.size);
    RETURN_IF_ERROR(trainer.Write(set, index, 0, values));
  }
  return absl::OkStatus();
}

absl::Status WriteInto(const std::filesystem::path& directory, const RunProgress& progress,
                       const RunIdentity& identity, ModelTrainer& trainer) {
  for (const StateSet set : {StateSet::kWeights, StateSet::kFirstMoment, StateSet::kSecondMoment}) {
    RETURN_IF_ERROR(SaveState(directory, set, trainer));
  }
  if (trainer.has_reference()) RETURN_IF_ERROR(SaveState(directory, StateSet::kReference, trainer));
  nlohmann::json json = ProgressToJson(progress);
  json["num_optimiser_steps"] = trainer.num_steps();
  json["format"] = kFormat;
  json["identity"] = identity;
  // A candidate's source may hold invalid UTF-8, which JSON cannot.
  const auto replace = nlohmann::json::error_handler_t::replace;
  return WriteFileAtomically(directory / kProgressFile, json.dump(1, ' ', false, replace));
}

// Returns the checkpoints of the best SFT weights of the newest `count`: a run may have to go on from any of these.
absl::StatusOr<std::set<int64_t>> BestOfNewest(const CheckpointDirectory& checkpoints, int count) {
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> all, checkpoints.List());
  std::set<int64_t> best;
  for (auto checkpoint = all.rbegin(); checkpoint != all.rend() && count-- > 0; ++checkpoint) {
    const absl::StatusOr<LoadedProgress> loaded = LoadProgress(checkpoint->path);
    if (loaded.ok()) best.insert(loaded->progress.cold_start.best_checkpoint);
  }
  return best;
}

absl::Status CheckFormat(const std::filesystem::path& path, const nlohmann::json& progress) {
  const nlohmann::json format = progress.value("format", nlohmann::json(1));
  if (format.is_number_integer() && format.get<int64_t>() <= kFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path.string(), " has format ", format.dump(), ", and this version reads up to ", kFormat,
                   "; use the version of Warpsmith that wrote it, or start another run"));
}

}  // namespace

std::filesystem::path TensorPath(const std::filesystem::path& checkpoint, StateSet set) {
  return FileOf(checkpoint, NameOf(set));
}

CheckpointStore::CheckpointStore(std::filesystem::path directory, int num_kept, RunIdentity identity)
    : directory_(std::move(directory)), num_kept_(num_kept), identity_(std::move(identity)) {}

absl::StatusOr<int64_t> CheckpointStore::NextNumber() const {
  ASSIGN_OR_RETURN(const CheckpointDirectory checkpoints, CheckpointDirectory::Open(directory_));
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> older, checkpoints.List());
  return older.empty() ? 1 : older.back().number + 1;
}

absl::Status CheckpointStore::Save(const RunProgress& progress, ModelTrainer& trainer) {
  ASSIGN_OR_RETURN(CheckpointDirectory checkpoints, CheckpointDirectory::Open(directory_));
  RETURN_IF_ERROR(checkpoints.RemoveIncomplete());  // of a process that was killed in the middle
  ASSIGN_OR_RETURN(const int64_t number, NextNumber());
  ASSIGN_OR_RETURN(const std::filesystem::path unfinished, checkpoints.Begin(number));
  const absl::Status written = WriteInto(unfinished, progress, identity_, trainer);
  if (!written.ok()) {
    (void)checkpoints.RemoveIncomplete();  // the error that counts is the first
    return written;
  }
  RETURN_IF_ERROR(checkpoints.Commit(number).status());
  ASSIGN_OR_RETURN(const std::set<int64_t> best, BestOfNewest(checkpoints, num_kept_));
  return checkpoints.Retain(num_kept_, best);
}

absl::StatusOr<std::filesystem::path> CheckpointStore::Find(int64_t number) const {
  ASSIGN_OR_RETURN(const CheckpointDirectory checkpoints, CheckpointDirectory::Open(directory_));
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> all, checkpoints.List());
  for (const Checkpoint& checkpoint : all) {
    if (checkpoint.number != number) continue;
    RETURN_IF_ERROR(VerifyManifest(checkpoint.path, Verification::kDigests));
    return checkpoint.path;
  }
  return absl::NotFoundError(absl::StrCat("checkpoint ", number, " is no longer in ", directory_.string()));
}

absl::StatusOr<int64_t> CheckpointStore::NumberOf(const std::filesystem::path& folder) const {
  ASSIGN_OR_RETURN(const CheckpointDirectory checkpoints, CheckpointDirectory::Open(directory_));
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> all, checkpoints.List());
  for (const Checkpoint& checkpoint : all) {
    if (checkpoint.path == folder) return checkpoint.number;
  }
  return absl::NotFoundError(absl::StrCat(folder.string(), " is no checkpoint of ", directory_.string()));
}

absl::StatusOr<std::optional<std::filesystem::path>> CheckpointStore::Newest() const {
  std::error_code ignored;
  if (!std::filesystem::exists(directory_, ignored)) return std::nullopt;
  ASSIGN_OR_RETURN(const CheckpointDirectory checkpoints, CheckpointDirectory::Open(directory_));
  ASSIGN_OR_RETURN(const std::optional<Checkpoint> newest,
                   checkpoints.NewestComplete(Verification::kDigests));
  return newest.has_value() ? std::optional(newest->path) : std::nullopt;
}

absl::StatusOr<LoadedProgress> LoadProgress(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / kProgressFile;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("num_optimiser_steps")) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is not what a checkpoint has there"));
  }
  RETURN_IF_ERROR(CheckFormat(path, json));
  ASSIGN_OR_RETURN(RunProgress progress, ProgressFromJson(json));
  try {
    return LoadedProgress{.progress = std::move(progress),
                          .num_optimiser_steps = json.at("num_optimiser_steps"),
                          .identity = json.value("identity", RunIdentity())};
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is malformed: ", Escape(error.what(), 512)));
  }
}

absl::Status LoadState(const std::filesystem::path& checkpoint, StateSet set, ModelTrainer& trainer) {
  return LoadFile(TensorPath(checkpoint, set), set, trainer);
}

absl::Status LoadTraining(const std::filesystem::path& checkpoint, int64_t num_optimiser_steps,
                          ModelTrainer& trainer) {
  trainer.set_num_steps(num_optimiser_steps);
  for (const StateSet set : {StateSet::kWeights, StateSet::kFirstMoment, StateSet::kSecondMoment}) {
    RETURN_IF_ERROR(LoadState(checkpoint, set, trainer));
  }
  return absl::OkStatus();
}

absl::Status LoadBestWeights(const std::filesystem::path& checkpoint, ModelTrainer& trainer) {
  const std::filesystem::path older = FileOf(checkpoint, kOlderBest);
  std::error_code ignored;
  if (!std::filesystem::exists(older, ignored)) return LoadState(checkpoint, StateSet::kWeights, trainer);
  return LoadFile(older, StateSet::kWeights, trainer);
}

}  // namespace warpsmith
