#include "core/model/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/model/hugging_face_checks.h"

namespace warpsmith {
namespace {

constexpr double kInitialDeviation = 0.02;
constexpr double kTwoPi = 6.283185307179586;

// A key for the random stream of one tensor.
uint64_t StreamOf(uint64_t seed, const std::string& name) {
  uint64_t key = seed;
  for (unsigned char c : name) key = UniformWord(key, c);
  return key;
}

// Draw `index` of a normal distribution, by Box and Muller.
double Normal(uint64_t stream, uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - UniformDouble(stream, 2 * index)));
  return radius * std::cos(kTwoPi * UniformDouble(stream, 2 * index + 1));
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

double InitialDeviation(const std::string& name, int64_t num_layers) {
  const bool into_residual = EndsWith(name, "o_proj.weight") || EndsWith(name, "down_proj.weight");
  return into_residual ? kInitialDeviation / std::sqrt(2.0 * static_cast<double>(num_layers))
                       : kInitialDeviation;
}

at::Tensor InitialValues(const HfTensorLayout& tensor, uint64_t seed, int64_t num_layers) {
  at::Tensor values = at::empty(tensor.shape, at::TensorOptions(at::kFloat));
  if (tensor.shape.size() == 1) return values.fill_(EndsWith(tensor.name, ".bias") ? 0.0 : 1.0);
  const uint64_t stream = StreamOf(seed, tensor.name);
  const double deviation = InitialDeviation(tensor.name, num_layers);
  float* out = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<float>(deviation * Normal(stream, i));
  return values;
}

// Copies `from` (any dtype, shape of the tensor) into its places of a buffer, or back.
void Scatter(const HfTensorLayout& tensor, const at::Tensor& from, const at::Tensor& buffer) {
  const at::Tensor flat = from.to(buffer.options()).contiguous().view({-1});
  for (const CopyRun& run : tensor.runs) {
    buffer.narrow(0, run.buffer_offset, run.length).copy_(flat.narrow(0, run.hf_offset, run.length));
  }
}

at::Tensor Gather(const HfTensorLayout& tensor, const at::Tensor& buffer, at::ScalarType dtype) {
  at::Tensor flat = at::empty({tensor.runs.back().hf_offset + tensor.runs.back().length},
                              at::TensorOptions(dtype).device(at::kCPU));
  for (const CopyRun& run : tensor.runs) {
    flat.narrow(0, run.hf_offset, run.length).copy_(buffer.narrow(0, run.buffer_offset, run.length));
  }
  return flat.view(tensor.shape);
}

}  // namespace

Parameters::Parameters(const ParameterLayout& layout, at::ScalarType dtype, at::Device device)
    : layout_(layout) {
  for (const ParameterBuffer& buffer : layout_.buffers()) {
    buffers_.push_back(at::zeros({buffer.size}, at::TensorOptions(dtype).device(device)));
  }
}

at::Tensor Parameters::View(int buffer, const std::string& entry) const {
  const ParameterEntry& found = layout_.entry(buffer, entry);
  return buffers_[buffer].narrow(0, found.offset, found.size()).view(found.shape);
}

void Parameters::InitRandom(uint64_t seed) {
  for (const HfTensorLayout& tensor : layout_.hf_tensors()) {
    Scatter(tensor, InitialValues(tensor, seed, config().num_hidden_layers),
            buffers_[tensor.buffer].detach());
  }
}

void Parameters::RequireGrad(bool required) {
  for (at::Tensor& buffer : buffers_) buffer.set_requires_grad(required);
}

void Parameters::ZeroGrad() {
  for (at::Tensor& buffer : buffers_) buffer.mutable_grad() = at::Tensor();
}

Parameters Parameters::Clone(at::ScalarType dtype) const {
  Parameters copy(layout_, dtype, device());
  copy.CopyFrom(*this);
  return copy;
}

void Parameters::CopyFrom(const Parameters& other) {
  WS_CHECK(other.config() == config()) << "copying parameters of another configuration";
  for (int i = 0; i < num_buffers(); ++i) buffers_[i].detach().copy_(other.buffers_[i].detach());
}

std::map<std::string, at::Tensor> Parameters::ToHf(at::ScalarType dtype) const {
  std::map<std::string, at::Tensor> tensors;
  for (const HfTensorLayout& tensor : layout_.hf_tensors()) {
    tensors[tensor.name] = HfTensor(tensor, dtype);
  }
  return tensors;
}

at::Tensor Parameters::HfTensor(const HfTensorLayout& tensor, at::ScalarType dtype) const {
  return Gather(tensor, buffers_[tensor.buffer].detach(), dtype);
}

absl::Status Parameters::CheckFitsFloat16(int index) const {
  for (const HfTensorLayout& tensor : layout_.hf_tensors()) {
    if (tensor.buffer == index) RETURN_IF_ERROR(CheckFitsFloat16(tensor));
  }
  return absl::OkStatus();
}

absl::Status Parameters::CheckFitsFloat16(const HfTensorLayout& tensor) const {
  if (AllFiniteFloat16(HfTensor(tensor, at::kHalf))) return absl::OkStatus();
  const at::Tensor values = HfTensor(tensor, at::kFloat).view({-1});
  const float* const end = values.const_data_ptr<float>() + values.numel();
  const float* const bad = std::find_if(values.const_data_ptr<float>(), end,
                                        [](float value) { return !std::isfinite(float{at::Half(value)}); });
  WS_CHECK(bad != end);
  if (!std::isfinite(*bad)) return NotFiniteTensor(tensor);
  return absl::OutOfRangeError(
      absl::StrCat("tensor ", tensor.name, " has the value ", *bad, "; float16 ends at 65504"));
}

bool AllFiniteFloat16(const at::Tensor& values) {
  constexpr uint16_t kExponent = 0x7C00;
  const at::Half* const data = values.const_data_ptr<at::Half>();
  bool finite = true;
  for (int64_t i = 0; i < values.numel(); ++i) finite &= (data[i].x & kExponent) != kExponent;
  return finite;
}

absl::Status Parameters::FromHf(const std::map<std::string, at::Tensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, value] : tensors) names.push_back(name);
  RETURN_IF_ERROR(CheckTensorNames(layout_, names));
  for (const HfTensorLayout& tensor : layout_.hf_tensors()) {
    const auto found = tensors.find(tensor.name);
    if (found == tensors.end()) return MissingTensor(layout_, tensor);
    const at::IntArrayRef shape = found->second.sizes();
    RETURN_IF_ERROR(CheckTensorShape(tensor, {shape.data(), shape.size()}));
    if (!at::isfinite(found->second).all().item<bool>()) return NotFiniteTensor(tensor);
    Scatter(tensor, found->second, buffers_[tensor.buffer].detach());
  }
  return absl::OkStatus();
}

std::string_view Parameters::BufferBytes(int index) const {
  const at::Tensor& buffer = buffers_.at(index);
  WS_CHECK(buffer.device().is_cpu()) << "bytes of a buffer on " << buffer.device().str();
  return {static_cast<const char*>(buffer.const_data_ptr()), buffer.nbytes()};
}

absl::Status Parameters::SetBufferBytes(int index, std::string_view bytes) {
  const at::Tensor& buffer = buffers_.at(index);
  WS_CHECK(buffer.device().is_cpu()) << "bytes of a buffer on " << buffer.device().str();
  if (bytes.size() != buffer.nbytes()) {
    return absl::InvalidArgumentError(absl::StrCat("buffer ", layout_.buffers()[index].name, " has ",
                                                   buffer.nbytes(), " bytes, but ", bytes.size(),
                                                   " were given"));
  }
  std::memcpy(buffer.detach().data_ptr(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

}  // namespace warpsmith
