#include "core/checkpoint/tensor_directory.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/absl_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/safetensors_writer.h"
#include "core/checkpoint/strict_json.h"

namespace warpsmith {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr int64_t kIndexBytesMax = int64_t{100} << 20;

// Shard by tensor name.
using WeightMap = std::map<std::string, std::string>;

absl::Status Invalid(const std::filesystem::path& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", what));
}

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

absl::StatusOr<WeightMap> ReadIndex(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kIndexBytesMax));
  const absl::StatusOr<Json> json = ParseStrictJson(text);
  if (!json.ok()) return Invalid(path, std::string(json.status().message()));
  if (!json->contains("weight_map") || !(*json)["weight_map"].is_object())
    return Invalid(path, "has no weight_map");
  WeightMap shard_of;
  for (const auto& [name, shard] : (*json)["weight_map"].items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get<std::string>())) {
      return Invalid(path, absl::StrCat("tensor \"", Escape(name, 200), "\" has no file of this folder"));
    }
    shard_of[name] = shard.get<std::string>();
  }
  return shard_of;
}

absl::Status CheckAgainstIndex(const SafetensorsFile& shard, const std::filesystem::path& path,
                               const WeightMap& shard_of) {
  for (const TensorView& tensor : shard.tensors()) {
    const auto found = shard_of.find(tensor.info.name);
    if (found == shard_of.end() || found->second != path.filename().string()) {
      return Invalid(path,
                     absl::StrCat("holds tensor \"", Escape(tensor.info.name, 200), "\", which the index ",
                                  found == shard_of.end() ? "does not have" : "puts into " + found->second));
    }
  }
  for (const auto& [name, file] : shard_of) {
    if (file == path.filename().string() && shard.Find(name) == nullptr) {
      return Invalid(path,
                     absl::StrCat("lacks tensor \"", Escape(name, 200), "\", which the index puts here"));
    }
  }
  return absl::OkStatus();
}

// `tensors` cut into runs of at most `bytes_max`, at least one tensor each.
absl::StatusOr<std::vector<std::vector<TensorInfo>>> CutIntoShards(const std::vector<TensorInfo>& tensors,
                                                                   int64_t bytes_max) {
  std::vector<std::vector<TensorInfo>> shards(1);
  int64_t shard_bytes = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::optional<int64_t> bytes = TensorBytes(tensor);
    if (!bytes.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor \"", tensor.name, "\" has a shape that cannot be"));
    }
    if (!shards.back().empty() && *bytes > bytes_max - shard_bytes) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    shards.back().push_back(tensor);
    shard_bytes += *bytes;
  }
  return shards;
}

std::string IndexText(const std::vector<std::vector<TensorInfo>>& shards,
                      const std::vector<std::string>& names) {
  int64_t total_bytes = 0;
  Json weight_map = Json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const TensorInfo& tensor : shards[i]) {
      weight_map[tensor.name] = names[i];
      total_bytes += *TensorBytes(tensor);
    }
  }
  return Json{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", weight_map}}.dump(2) + "\n";
}

absl::Status CheckUnique(const std::vector<TensorInfo>& tensors) {
  std::set<std::string> names;
  for (const TensorInfo& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor \"", tensor.name, "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

// What `transformers` looks for before it loads a file into PyTorch.
const TensorMetadata& FormatMetadata() {
  static const TensorMetadata kMetadata = {{"format", "pt"}};
  return kMetadata;
}

}  // namespace

absl::StatusOr<TensorDirectory> TensorDirectory::Open(const std::filesystem::path& directory) {
  std::vector<SafetensorsFile> shards;
  if (!std::filesystem::exists(directory / kIndexFile)) {
    ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(directory / kSingleFile));
    shards.push_back(std::move(file));
    return TensorDirectory(std::move(shards));
  }
  ASSIGN_OR_RETURN(const WeightMap shard_of, ReadIndex(directory / kIndexFile));
  std::set<std::string> names;
  for (const auto& [tensor, shard] : shard_of) names.insert(shard);
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(SafetensorsFile shard, SafetensorsFile::Open(directory / name));
    RETURN_IF_ERROR(CheckAgainstIndex(shard, directory / name, shard_of));
    shards.push_back(std::move(shard));
  }
  return TensorDirectory(std::move(shards));
}

TensorDirectory::TensorDirectory(std::vector<SafetensorsFile> shards) : shards_(std::move(shards)) {
  for (const TensorView* tensor : tensors()) by_name_[tensor->info.name] = tensor;
}

const TensorView* TensorDirectory::Find(std::string_view name) const {
  const auto found = by_name_.find(AbslView(name));
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<const TensorView*> TensorDirectory::tensors() const {
  std::vector<const TensorView*> all;
  for (const SafetensorsFile& shard : shards_) {
    for (const TensorView& tensor : shard.tensors()) all.push_back(&tensor);
  }
  return all;
}

absl::Status WriteTensorDirectory(const std::filesystem::path& directory,
                                  const std::vector<TensorInfo>& tensors, int64_t shard_bytes_max,
                                  const TensorSource& source) {
  RETURN_IF_ERROR(CheckUnique(tensors));
  ASSIGN_OR_RETURN(const auto shards, CutIntoShards(tensors, shard_bytes_max));
  if (shards.size() == 1)
    return WriteSafetensors(directory / kSingleFile, shards[0], FormatMetadata(), source);
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, shards.size()));
    RETURN_IF_ERROR(WriteSafetensors(directory / names.back(), shards[i], FormatMetadata(), source));
  }
  return WriteFileAtomically(directory / kIndexFile, IndexText(shards, names));
}

}  // namespace warpsmith
