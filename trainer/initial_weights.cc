#include "trainer/initial_weights.h"

#include <ATen/ops/from_blob.h>

#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "trainer/tensor_file.h"

namespace warpsmith {
namespace {

// Files that hold the weights: those the index names, else the one there is.
absl::StatusOr<std::set<std::string>> WeightFiles(const std::filesystem::path& directory) {
  const std::filesystem::path index_path = directory / "model.safetensors.index.json";
  if (!std::filesystem::exists(index_path)) return std::set<std::string>{"model.safetensors"};
  ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path));
  const nlohmann::json index = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::set<std::string> files;
  if (index.is_object() && index.contains("weight_map") && index["weight_map"].is_object()) {
    for (const auto& file : index["weight_map"]) {
      if (file.is_string()) files.insert(file.get<std::string>());
    }
  }
  if (files.empty()) return absl::InvalidArgumentError(absl::StrCat(index_path.string(), " names no file"));
  return files;
}

absl::StatusOr<at::Tensor> TensorOf(const TensorBytes& bytes) {
  if (bytes.dtype != "F32" && bytes.dtype != "BF16") {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", bytes.name, " is ", bytes.dtype, ", not F32 or BF16"));
  }
  const at::ScalarType dtype = bytes.dtype == "F32" ? at::kFloat : at::kBFloat16;
  int64_t count = 1;
  for (const int64_t size : bytes.shape) count *= size;
  if (count * static_cast<int64_t>(c10::elementSize(dtype)) != static_cast<int64_t>(bytes.bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", bytes.name, " has bytes for another shape"));
  }
  return at::from_blob(const_cast<char*>(bytes.bytes.data()), bytes.shape, at::TensorOptions(dtype));
}

}  // namespace

absl::Status LoadHuggingFaceWeights(const std::filesystem::path& directory, Parameters& parameters) {
  ASSIGN_OR_RETURN(const std::set<std::string> names, WeightFiles(directory));
  std::vector<std::unique_ptr<TensorFile>> files;  // the tensors are views into them
  std::map<std::string, at::Tensor> tensors;
  try {
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(files.emplace_back(), ReadTensorFile(directory / name));
      for (const auto& [tensor_name, bytes] : files.back()->tensors) {
        ASSIGN_OR_RETURN(tensors[tensor_name], TensorOf(bytes));
      }
    }
    return parameters.FromHf(tensors);
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("loading weights failed in LibTorch: ", Escape(error.what(), 2048)));
  }
}

}  // namespace warpsmith
