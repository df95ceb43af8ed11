#include "trainer/run_folder/checkpoint_store.h"

#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/safetensors_file.h"
#include "core/checkpoint/safetensors_writer.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

constexpr char kProgressFile[] = "progress.json";
// 1 had neither format nor identity. Raise it when an older version would misread what Save writes.
constexpr int kFormat = 2;
constexpr char kLayoutKey[] = "layout_sha256";

std::span<const std::byte> AsBytes(std::string_view bytes) { return std::as_bytes(std::span(bytes)); }

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status SaveParameters(const std::filesystem::path& checkpoint, const NamedParameters& set) {
  const Parameters& parameters = *set.parameters;
  std::vector<TensorInfo> infos;
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    infos.push_back({.name = parameters.layout().buffers()[index].name,
                     .type = TensorType::kF32,
                     .shape = {parameters.buffer(index).numel()}});
  }
  const TensorMetadata metadata = {{kLayoutKey, parameters.layout().Sha256()}};
  int index = 0;
  return WriteSafetensors(TensorPath(checkpoint, set.name), infos, metadata,
                          [&](const TensorInfo&, const ByteSink& sink) {
                            return sink(AsBytes(parameters.BufferBytes(index++)));
                          });
}

absl::Status WriteInto(const std::filesystem::path& directory, const RunProgress& progress,
                       int64_t num_optimiser_steps, const RunIdentity& identity,
                       const std::vector<NamedParameters>& tensors) {
  for (const NamedParameters& set : tensors) RETURN_IF_ERROR(SaveParameters(directory, set));
  nlohmann::json json = ProgressToJson(progress);
  json["num_optimiser_steps"] = num_optimiser_steps;
  json["format"] = kFormat;
  json["identity"] = identity;
  // A candidate's source may hold invalid UTF-8, which JSON cannot.
  const auto replace = nlohmann::json::error_handler_t::replace;
  return WriteFileAtomically(directory / kProgressFile, json.dump(1, ' ', false, replace));
}

absl::Status CheckFormat(const std::filesystem::path& path, const nlohmann::json& progress) {
  const nlohmann::json format = progress.value("format", nlohmann::json(1));
  if (format.is_number_integer() && format.get<int64_t>() <= kFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path.string(), " has format ", format.dump(), ", and this version reads up to ", kFormat,
                   "; use the version of Warpsmith that wrote it, or start another run"));
}

}  // namespace

std::filesystem::path TensorPath(const std::filesystem::path& checkpoint, const std::string& name) {
  return checkpoint / (name + ".safetensors");
}

CheckpointStore::CheckpointStore(std::filesystem::path directory, int num_kept, RunIdentity identity)
    : directory_(std::move(directory)), num_kept_(num_kept), identity_(std::move(identity)) {}

absl::Status CheckpointStore::Save(const RunProgress& progress, int64_t num_optimiser_steps,
                                   const std::vector<NamedParameters>& tensors) {
  ASSIGN_OR_RETURN(CheckpointDirectory checkpoints, CheckpointDirectory::Open(directory_));
  RETURN_IF_ERROR(checkpoints.RemoveIncomplete());  // of a process that was killed in the middle
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> older, checkpoints.List());
  const int64_t number = older.empty() ? 1 : older.back().number + 1;
  ASSIGN_OR_RETURN(const std::filesystem::path unfinished, checkpoints.Begin(number));
  const absl::Status written = WriteInto(unfinished, progress, num_optimiser_steps, identity_, tensors);
  if (!written.ok()) {
    (void)checkpoints.RemoveIncomplete();  // the error that counts is the first
    return written;
  }
  RETURN_IF_ERROR(checkpoints.Commit(number).status());
  return checkpoints.Retain(num_kept_);
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

absl::Status LoadParameters(const std::filesystem::path& checkpoint, const NamedParameters& tensors) {
  const std::filesystem::path path = TensorPath(checkpoint, tensors.name);
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const ParameterLayout& layout = tensors.parameters->layout();
  const auto written = file.metadata().find(kLayoutKey);
  if (written == file.metadata().end() || written->second != layout.Sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is of a model with another shape; see section model"));
  }
  for (int index = 0; index < layout.num_buffers(); ++index) {
    const TensorView* const tensor = file.Find(layout.buffers()[index].name);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), " has no ", layout.buffers()[index].name));
    }
    RETURN_IF_ERROR(tensors.parameters->SetBufferBytes(index, AsText(tensor->bytes)));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
