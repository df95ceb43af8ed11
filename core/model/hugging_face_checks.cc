#include "core/model/hugging_face_checks.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/kernels/bfloat16.h"

namespace warpsmith {
namespace {

constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr char kHead[] = "lm_head.weight";

// Element `index` of a tensor of F32, BF16 or F16; float32 has the values of all three.
float ValueAt(const TensorView& tensor, int64_t index) {
  const std::byte* const from = tensor.bytes.data() + index * TensorTypeBytes(tensor.info.type);
  if (tensor.info.type == TensorType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return tensor.info.type == TensorType::kF16 ? FloatOfFloat16(bits) : FloatOfBfloat16(bits);
}

// REQUIRES: both tensors have one shape. Equal bytes, the usual case, are compared at the rate of the memory.
bool SameValues(const TensorView& a, const TensorView& b) {
  const bool same_bytes = a.info.type == b.info.type && a.bytes.size() == b.bytes.size() &&
                          std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
  if (same_bytes) return true;
  const int64_t count = std::ssize(a.bytes) / TensorTypeBytes(a.info.type);
  for (int64_t i = 0; i < count; ++i) {
    if (ValueAt(a, i) != ValueAt(b, i)) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckTensorNames(const ParameterLayout& layout, const std::vector<std::string>& names) {
  std::set<std::string> known;
  for (const HfTensorLayout& tensor : layout.hf_tensors()) known.insert(tensor.name);
  if (layout.config().tie_word_embeddings) known.insert(kHead);
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

absl::Status CheckTiedHead(const ParameterLayout& layout, const TensorDirectory& files) {
  const TensorView* const head = files.Find(kHead);
  const TensorView* const embedding = files.Find(kEmbedding);
  if (!layout.config().tie_word_embeddings || head == nullptr || embedding == nullptr) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckTensorShape({.name = kHead, .shape = embedding->info.shape}, head->info.shape));
  if (SameValues(*head, *embedding)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", kHead, " has other values than ", kEmbedding,
      ", but config.json says tie_word_embeddings: say false there to compute with this head, or "
      "leave the tensor out"));
}

absl::Status MissingTensor(const ParameterLayout& layout, const HfTensorLayout& tensor) {
  return absl::InvalidArgumentError(absl::StrCat(
      "checkpoint lacks the tensor ", tensor.name, " of a ", ArchitectureOf(layout.config()),
      tensor.name == kHead ? "; where the embedding is the head, config.json must say tie_word_embeddings"
                           : ""));
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
  RETURN_IF_ERROR(CheckTiedHead(layout, files));
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
