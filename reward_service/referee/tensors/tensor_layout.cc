#include "reward_service/referee/tensors/tensor_layout.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"

namespace warpsmith {
namespace {

using oracle::Loaded;
using oracle::Tensor;

constexpr int64_t kAlignment = 64;
constexpr int64_t kGuardBytes = 4096;
constexpr size_t kToldBytesMax = kPacketBytesMax - 4096;  // the rest is for what a jail is told beside

const std::map<std::pair<int, int>, std::string>& DtypeNames() {
  static const auto* const names = new std::map<std::pair<int, int>, std::string>{
      {{2, 16}, "float16"}, {{2, 32}, "float32"}, {{2, 64}, "float64"}, {{4, 16}, "bfloat16"},
      {{0, 8}, "int8"},     {{0, 16}, "int16"},   {{0, 32}, "int32"},   {{0, 64}, "int64"},
      {{1, 8}, "uint8"},    {{6, 8}, "bool"}};
  return *names;
}

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Sets strides, and num_bytes with the gaps they make.
absl::Status ReadStrides(const nlohmann::json& fields, int64_t bytes_max, TensorSpec& spec) {
  const nlohmann::json* const strides = Find(fields, Tensor::strides);
  if (strides == nullptr || spec.num_elements == 0) return absl::OkStatus();
  if (!strides->is_array() || strides->size() != spec.shape.size())
    return absl::InvalidArgumentError("a tensor's strides do not fit its shape");
  int64_t span = 1;
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    const nlohmann::json& stride = (*strides)[d];
    if (!stride.is_number_integer() || stride < 1 || stride > bytes_max)
      return absl::InvalidArgumentError("a tensor's stride is out of range");
    spec.strides.push_back(stride.get<int64_t>());
    const int64_t steps = spec.shape[d] - 1;
    if (steps > 0 && spec.strides.back() > (bytes_max - span) / steps)
      return absl::InvalidArgumentError(absl::StrCat("a tensor spans more than ", bytes_max, " elements"));
    span += steps * spec.strides.back();
  }
  spec.num_bytes = span * spec.bits / 8;
  return absl::OkStatus();
}

absl::StatusOr<TensorSpec> ReadSpec(const nlohmann::json& fields, int64_t bytes_max) {
  TensorSpec spec;
  spec.code = static_cast<int>(Read(fields, Tensor::code));
  spec.bits = static_cast<int>(Read(fields, Tensor::bits));
  if (!DtypeNames().contains({spec.code, spec.bits}))
    return absl::InvalidArgumentError("a tensor has an unknown dtype");
  const nlohmann::json* const shape = Find(fields, Tensor::shape);
  if (shape == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has no shape of at most ", Tensor::shape.num_max, " dimensions"));
  }
  spec.num_elements = 1;
  for (const nlohmann::json& extent : *shape) {
    if (!extent.is_number_integer() || extent < 0 || extent > bytes_max) {
      return absl::InvalidArgumentError("a tensor's extent is out of range");
    }
    spec.shape.push_back(extent.get<int64_t>());
    if (spec.shape.back() != 0 && spec.num_elements > bytes_max / spec.shape.back()) {
      return absl::InvalidArgumentError(absl::StrCat("a tensor is larger than ", bytes_max, " bytes"));
    }
    spec.num_elements *= spec.shape.back();
  }
  spec.num_bytes = spec.num_elements * spec.bits / 8;
  spec.number = Read(fields, Tensor::number);
  spec.borrowed = Read(fields, Tensor::borrowed);
  spec.name = Read(fields, Tensor::name);
  spec.constant = Read(fields, Tensor::constant);
  spec.written = Read(fields, Tensor::written);
  spec.result = Read(fields, Tensor::result);
  return spec;
}

absl::StatusOr<std::vector<TensorSpec>> ReadSpecs(const nlohmann::json& described, const ListField& kind,
                                                  int64_t bytes_max) {
  const nlohmann::json* const found = Find(described, kind);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the task has more than ", kind.num_max, " ", kind.name));
  }
  std::vector<TensorSpec> specs;
  for (const nlohmann::json& fields : *found) {
    if (!fields.is_object()) return absl::InvalidArgumentError("a tensor's description is malformed");
    ASSIGN_OR_RETURN(TensorSpec spec, ReadSpec(fields, bytes_max));
    specs.push_back(std::move(spec));
  }
  return specs;
}

// What jails are told of a task is in one packet.
absl::Status CheckToldBytes(const TaskLayout& layout, const nlohmann::json& described) {
  nlohmann::json told = {ToJson(layout.inputs), ToJson(layout.parameters), ToJson(layout.outputs)};
  const nlohmann::json* const init_inputs = Find(described, Loaded::init_inputs);
  if (init_inputs != nullptr) told.push_back(*init_inputs);
  const size_t num_bytes = told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
  if (num_bytes <= kToldBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("names and shapes of the task's tensors, and what get_init_inputs() returns, take ",
                   num_bytes, " bytes as text, of which ", kToldBytesMax, " are allowed"));
}

}  // namespace

int64_t TaskLayout::parameter_bytes() const {
  int64_t num_bytes = 0;
  for (const TensorSpec& spec : parameters) num_bytes += spec.num_bytes;
  return num_bytes;
}

int64_t TaskLayout::own_output_bytes() const {
  int64_t num_bytes = 0;
  for (const TensorSpec& spec : outputs) num_bytes += spec.borrowed ? 0 : spec.num_bytes;
  return num_bytes;
}

int64_t TaskLayout::tensor_bytes() const {
  int64_t total = 0;
  for (const auto* specs : {&inputs, &parameters, &outputs}) {
    for (const TensorSpec& spec : *specs) total += spec.num_bytes;
  }
  return total;
}

absl::StatusOr<TaskLayout> MakeLayout(const nlohmann::json& described, int64_t buffer_bytes_max) {
  TaskLayout layout;
  ASSIGN_OR_RETURN(layout.inputs, ReadSpecs(described, Loaded::inputs, buffer_bytes_max));
  for (size_t i = 0; i < layout.inputs.size(); ++i)
    RETURN_IF_ERROR(ReadStrides(described[Loaded::inputs.name][i], buffer_bytes_max, layout.inputs[i]));
  ASSIGN_OR_RETURN(layout.parameters, ReadSpecs(described, Loaded::parameters, buffer_bytes_max));
  ASSIGN_OR_RETURN(layout.outputs, ReadSpecs(described, Loaded::outputs, buffer_bytes_max));
  layout.reference_us = Read(described, Loaded::call_us);
  layout.construction = absl::Microseconds(Read(described, Loaded::construction_us));
  layout.product_share = Read(described, Loaded::product_share);
  layout.moves_data = Read(described, Loaded::moves_data);
  int64_t end = 0;
  for (auto* specs : {&layout.inputs, &layout.parameters}) {
    for (TensorSpec& spec : *specs) {
      spec.offset = end;
      end = RoundUp(end + spec.num_bytes, kAlignment);
    }
  }
  layout.input_buffer_bytes = RoundUp(end + 1, kGuardBytes);
  end = kGuardBytes;
  for (TensorSpec& spec : layout.outputs) {
    spec.offset = end;
    end = RoundUp(end + spec.num_bytes, kAlignment) + kGuardBytes;
  }
  layout.output_buffer_bytes = RoundUp(end, kGuardBytes);
  for (TensorSpec& spec : layout.outputs) {
    spec.margins_offset = layout.output_buffer_bytes + layout.margin_bytes;
    layout.margin_bytes += RoundUp(spec.num_elements * int64_t{sizeof(uint32_t)}, kAlignment);
  }
  if (layout.input_buffer_bytes > buffer_bytes_max || layout.output_buffer_bytes > buffer_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("the task's tensors need more than ", buffer_bytes_max, " bytes"));
  }
  RETURN_IF_ERROR(CheckToldBytes(layout, described));
  return layout;
}

nlohmann::json ToJson(const std::vector<TensorSpec>& specs) {
  nlohmann::json list = nlohmann::json::array();
  for (const TensorSpec& spec : specs) {
    list.push_back({{Tensor::code, spec.code},
                    {Tensor::bits, spec.bits},
                    {Tensor::shape, spec.shape},
                    {Tensor::number, spec.number},
                    {Tensor::name, spec.name},
                    {Tensor::offset, spec.offset}});
    if (spec.constant) list.back()[Tensor::constant.name] = true;
    if (spec.result) list.back()[Tensor::result.name] = true;
    if (!spec.strides.empty()) list.back()[Tensor::strides.name] = spec.strides;
  }
  return list;
}

std::vector<int64_t> Offsets(const TaskLayout& layout, bool outputs) {
  std::vector<int64_t> offsets;
  if (outputs) {
    for (const TensorSpec& spec : layout.outputs) offsets.push_back(spec.offset);
    for (const TensorSpec& spec : layout.outputs) offsets.push_back(spec.margins_offset);
    return offsets;
  }
  for (const auto* specs : {&layout.inputs, &layout.parameters}) {
    for (const TensorSpec& spec : *specs) offsets.push_back(spec.offset);
  }
  return offsets;
}

std::string DtypeName(int code, int bits) {
  const auto found = DtypeNames().find({code, bits});
  return found == DtypeNames().end() ? absl::StrCat("dtype(", code, ", ", bits, ")") : found->second;
}

std::string ShapeName(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string IndexName(const std::vector<int64_t>& shape, int64_t flat) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return ShapeName(index);
}

}  // namespace warpsmith
