#include "core/model/hugging_face_checks.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::Status CheckTensorNames(const ParameterLayout& layout, const std::vector<std::string>& names) {
  std::set<std::string> known;
  for (const HfTensorLayout& tensor : layout.hf_tensors()) known.insert(tensor.name);
  if (layout.config().tie_word_embeddings) known.insert("lm_head.weight");
  for (const std::string& name : names) {
    if (known.count(name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("checkpoint has a tensor that a ", ArchitectureOf(layout.config()), " of ",
                       layout.config().num_hidden_layers, " layers lacks: ", Escape(name, 200)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensorType(const TensorInfo& info) {
  if (info.type == TensorType::kF32 || info.type == TensorType::kBF16 || info.type == TensorType::kF16) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("tensor \"", Escape(info.name, 128), "\" is of type ",
                                                 std::string(TensorTypeName(info.type)),
                                                 "; F32, BF16 and F16 can be read"));
}

absl::Status CheckTensorShape(const HfTensorLayout& tensor, absl::Span<const int64_t> shape) {
  if (shape == absl::MakeConstSpan(tensor.shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", tensor.name, " has shape [", absl::StrJoin(shape, ","),
                   "], but the configuration wants [", absl::StrJoin(tensor.shape, ","), "]"));
}

absl::Status MissingTensor(const ParameterLayout& layout, const HfTensorLayout& tensor) {
  return absl::InvalidArgumentError(
      absl::StrCat("checkpoint lacks the tensor ", tensor.name, " of a ", ArchitectureOf(layout.config())));
}

absl::Status NotFiniteTensor(const HfTensorLayout& tensor) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has values that are not finite"));
}

absl::StatusOr<std::vector<const TensorView*>> FindModelTensors(const ParameterLayout& layout,
                                                                const TensorDirectory& files) {
  std::vector<std::string> names;
  for (const TensorView* view : files.tensors()) {
    RETURN_IF_ERROR(CheckTensorType(view->info));
    names.push_back(view->info.name);
  }
  std::sort(names.begin(), names.end());  // which of several is named does not depend on the files
  RETURN_IF_ERROR(CheckTensorNames(layout, names));
  std::vector<const TensorView*> found;
  for (const HfTensorLayout& tensor : layout.hf_tensors()) {
    found.push_back(files.Find(tensor.name));
    if (found.back() == nullptr) return MissingTensor(layout, tensor);
    RETURN_IF_ERROR(CheckTensorShape(tensor, found.back()->info.shape));
  }
  return found;
}

DeviceDtype DtypeOfCheckpoint(const std::filesystem::path& directory) {
  const absl::StatusOr<TensorDirectory> files = TensorDirectory::Open(directory);
  if (!files.ok()) return DeviceDtype::kBfloat16;
  const std::vector<const TensorView*> tensors = files->tensors();
  const bool all = std::all_of(tensors.begin(), tensors.end(),
                               [](const TensorView* view) { return view->info.type == TensorType::kF16; });
  return all && !tensors.empty() ? DeviceDtype::kFloat16 : DeviceDtype::kBfloat16;
}

}  // namespace warpsmith
