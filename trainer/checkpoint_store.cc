#include "trainer/checkpoint_store.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "trainer/tensor_file.h"

namespace warpsmith {
namespace {

constexpr char kProgressFile[] = "progress.json";
constexpr char kUnfinished[] = ".unfinished";

std::filesystem::path TensorPath(const std::filesystem::path& directory, const std::string& name) {
  return directory / (name + ".safetensors");
}

absl::Status FileError(const std::string& what, const std::filesystem::path& path,
                       const std::error_code& error) {
  return absl::InternalError(absl::StrCat(what, " ", path.string(), ": ", error.message()));
}

std::vector<TensorBytes> BuffersOf(const Parameters& parameters) {
  std::vector<TensorBytes> tensors;
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    tensors.push_back({.name = parameters.layout().buffers()[index].name,
                       .dtype = "F32",
                       .shape = {parameters.buffer(index).numel()},
                       .bytes = parameters.BufferBytes(index)});
  }
  return tensors;
}

absl::StatusOr<nlohmann::json> ReadProgressFile(const std::filesystem::path& checkpoint) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(checkpoint / kProgressFile));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("files") || !json.contains("num_optimiser_steps")) {
    return absl::InvalidArgumentError(
        absl::StrCat((checkpoint / kProgressFile).string(), " is cut or was edited; remove this checkpoint"));
  }
  return json;
}

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path directory, int num_kept)
    : directory_(std::move(directory)), num_kept_(num_kept) {}

absl::Status CheckpointStore::Save(const RunProgress& progress, int64_t num_optimiser_steps,
                                   const std::vector<NamedParameters>& tensors) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, Numbers());
  const int64_t number = numbers.empty() ? 1 : numbers.back() + 1;
  const std::filesystem::path unfinished = directory_ / kUnfinished;
  const std::filesystem::path finished = directory_ / absl::StrFormat("%06d", number);
  std::error_code error;
  std::filesystem::remove_all(unfinished, error);  // of a process that was killed
  std::filesystem::create_directories(unfinished, error);
  if (error) return FileError("cannot make", unfinished, error);

  const absl::Status written = WriteInto(unfinished, progress, num_optimiser_steps, tensors);
  if (!written.ok()) {
    std::filesystem::remove_all(unfinished, error);
    return written;
  }
  std::filesystem::rename(unfinished, finished, error);
  if (error) return FileError("cannot move a checkpoint to", finished, error);
  RETURN_IF_ERROR(SyncDirectory(directory_));
  for (size_t i = 0; i + num_kept_ <= numbers.size(); ++i) {
    std::filesystem::remove_all(directory_ / absl::StrFormat("%06d", numbers[i]), error);
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::WriteInto(const std::filesystem::path& directory, const RunProgress& progress,
                                        int64_t num_optimiser_steps,
                                        const std::vector<NamedParameters>& tensors) const {
  nlohmann::json json = ProgressToJson(progress);
  json["num_optimiser_steps"] = num_optimiser_steps;
  json["files"] = nlohmann::json::object();
  for (const NamedParameters& set : tensors) {
    ASSIGN_OR_RETURN(const std::string sha256,
                     WriteTensorFile(TensorPath(directory, set.name), BuffersOf(*set.parameters)));
    json["files"][set.name] = sha256;
  }
  json["layout_sha256"] = tensors.front().parameters->layout().Sha256();
  const auto replace = nlohmann::json::error_handler_t::replace;
  return WriteFileAtomically(directory / kProgressFile, json.dump(1, ' ', false, replace));
}

absl::StatusOr<std::optional<std::filesystem::path>> CheckpointStore::Newest() const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, Numbers());
  if (numbers.empty()) return std::optional<std::filesystem::path>();
  return std::optional(directory_ / absl::StrFormat("%06d", numbers.back()));
}

absl::StatusOr<std::vector<int64_t>> CheckpointStore::Numbers() const {
  std::vector<int64_t> numbers;
  std::error_code error;
  if (!std::filesystem::exists(directory_, error)) return numbers;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    int64_t number = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &number)) numbers.push_back(number);
  }
  if (error) return FileError("cannot list", directory_, error);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::StatusOr<LoadedProgress> LoadProgress(const std::filesystem::path& checkpoint) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadProgressFile(checkpoint));
  ASSIGN_OR_RETURN(RunProgress progress, ProgressFromJson(json));
  return LoadedProgress{.progress = std::move(progress),
                        .num_optimiser_steps = json.at("num_optimiser_steps")};
}

absl::Status LoadParameters(const std::filesystem::path& checkpoint, const NamedParameters& tensors) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadProgressFile(checkpoint));
  const std::filesystem::path path = TensorPath(checkpoint, tensors.name);
  const auto expected = json.at("files").find(tensors.name);
  if (expected == json.at("files").end()) return absl::NotFoundError(absl::StrCat("no ", path.string()));
  if (json.value("layout_sha256", "") != tensors.parameters->layout().Sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.string(), " is of a model with another shape; see section model"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorFile> file, ReadTensorFile(path));
  if (Sha256Hex(file->content) != expected->get<std::string>()) {
    return absl::DataLossError(absl::StrCat(path.string(), " has other bytes than were written; remove ",
                                            checkpoint.string(), " to go on from the checkpoint before"));
  }
  for (int index = 0; index < tensors.parameters->num_buffers(); ++index) {
    const std::string& name = tensors.parameters->layout().buffers()[index].name;
    const auto found = file->tensors.find(name);
    if (found == file->tensors.end()) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), " has no buffer ", name));
    }
    RETURN_IF_ERROR(tensors.parameters->SetBufferBytes(index, found->second.bytes));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
