// Outputs of a Python program, which lie where it made them: looked at, compared and read there.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/process/jail.h"

namespace warpsmith {
namespace {

// Of an output's gaps, which are read with it where it is read on the host.
constexpr int64_t kGapBytesMax = int64_t{1} << 30;

std::vector<int64_t> Integers(const nlohmann::json& fields, const ListField& field) {
  std::vector<int64_t> values;
  const nlohmann::json* const list = Find(fields, field);
  if (list == nullptr) return values;
  for (const nlohmann::json& value : *list)
    values.push_back(value.is_number_integer() ? value.get<int64_t>() : -1);
  return values;
}

}  // namespace

void Jail::CloseForeign() {
  buffers_.store->CloseForeign(handles_);
  handles_.clear();
}

void Jail::NoteReturned() {
  for (size_t i = 0; i < places_.size(); ++i) {
    const nlohmann::json& place = places_[i];
    // Addresses tell places of a reference apart, which shows no memory; a candidate could lie about its addresses.
    const bool is_new = returned_
                            .emplace(Read(place, jail::Place::handle), Read(place, jail::Place::offset),
                                     Read(place, jail::Place::pointer))
                            .second;
    if (is_new) returned_bytes_ += layout_.outputs[i % layout_.outputs.size()].num_bytes;
  }
}

void Jail::PoisonFormerOutputs() {
  if (!on_gpu()) return;
  for (size_t i = 0; i < former_places_.size(); ++i) {
    const size_t index = i % layout_.outputs.size();
    const nlohmann::json& place = former_places_[i];
    const TensorSpec& spec = layout_.outputs[index];
    const std::string handle = Read(place, jail::Place::handle);
    const StridedTensor tensor{spec.shape, Integers(place, jail::Place::strides), spec.bits / 8};
    // Between its elements may lie what is not the output's.
    if (spec.borrowed || handle.empty() || CheckPlace(index, place) || !IsWithin(tensor, spec.num_bytes))
      continue;
    handles_.insert(handle);
    buffers_.store->FillForeign(kPoisonByte, handle, Read(place, jail::Place::offset), spec.num_bytes);
  }
}

absl::StatusOr<Comparison> Jail::CompareFormerInPlace(size_t index, const Draw& draw, size_t call) {
  return ComparePlace(former_places_, index, draw, call);
}

absl::StatusOr<Comparison> Jail::ComparePlace(const nlohmann::json& places, size_t index, const Draw& draw,
                                              size_t call) {
  if (!buffers_.store->on_gpu()) return absl::UnimplementedError("outputs are compared on the host");
  const TensorSpec& spec = layout_.outputs[index];
  const nlohmann::json& place = places[call * layout_.outputs.size() + index];
  const StridedTensor tensor{spec.shape, Integers(place, jail::Place::strides), spec.bits / 8};
  const std::string handle = Read(place, jail::Place::handle);
  const bool is_dense = IsDense(tensor);
  if (CheckPlace(index, place) || handle.empty() ||
      !(is_dense || (IsWithin(tensor, buffers_.store->device_bytes()) && !SharesElements(tensor))))
    return absl::UnimplementedError("an output among the inputs, or whose elements share memory");
  const ExpectedOutput expected{spec, draw.tolerances[index], draw.expected};
  const int64_t offset = Read(place, jail::Place::offset);
  handles_.insert(handle);
  return buffers_.store->CompareForeign(expected,
                                        {handle, offset, is_dense ? std::vector<int64_t>() : tensor.strides});
}

absl::StatusOr<const void*> Jail::FormerOutput(size_t index, Fault& fault, size_t call) {
  return ReadPythonOutput(former_places_, call, index, fault);
}

std::optional<Fault> Jail::CheckPlace(size_t index, const nlohmann::json& place) const {
  const TensorSpec& spec = layout_.outputs[index];
  if (!place.is_object()) return Fault{v1::VERDICT_RUNTIME_ERROR, "an output was not described"};
  const std::vector<int64_t> shape = Integers(place, jail::Place::shape);
  if (shape != spec.shape) {
    return Fault{v1::VERDICT_WRONG_SHAPE, absl::StrCat("output ", index, " has shape ", ShapeName(shape),
                                                       ", expected ", ShapeName(spec.shape))};
  }
  if (Read(place, jail::Place::code) != spec.code || Read(place, jail::Place::bits) != spec.bits) {
    return Fault{v1::VERDICT_WRONG_DTYPE,
                 absl::StrCat("output ", index, " has dtype ", Escape(Read(place, jail::Place::dtype)),
                              ", expected ", DtypeName(spec.code, spec.bits))};
  }
  return std::nullopt;
}

std::optional<Fault> Jail::CheckApart(size_t call) const {
  // An output's allocation, its first byte there and the one behind its last, and its index.
  std::vector<std::tuple<std::string, uint64_t, uint64_t, size_t>> pieces;
  for (size_t index = 0; index < layout_.outputs.size(); ++index) {
    const TensorSpec& spec = layout_.outputs[index];
    if (spec.borrowed || spec.num_bytes == 0) continue;
    const nlohmann::json& place = places_[call * layout_.outputs.size() + index];
    const auto start =
        static_cast<uint64_t>(Read(place, on_gpu() ? jail::Place::offset : jail::Place::pointer));
    // Elements of two outputs may take turns: then they begin apart, and no more is asked.
    const bool is_dense = IsDense({spec.shape, Integers(place, jail::Place::strides), spec.bits / 8});
    const auto end = start + static_cast<uint64_t>(is_dense ? spec.num_bytes : 1);
    pieces.emplace_back(Read(place, jail::Place::handle), start, end, index);
  }
  std::sort(pieces.begin(), pieces.end());
  const auto found =
      std::adjacent_find(pieces.begin(), pieces.end(), [](const auto& left, const auto& right) {
        return std::get<0>(left) == std::get<0>(right) && std::get<1>(right) < std::get<2>(left);
      });
  if (found == pieces.end()) return std::nullopt;
  Fault fault{v1::VERDICT_HACK,
              absl::StrCat("outputs ", std::get<3>(*found), " and ", std::get<3>(*std::next(found)),
                           " lie in the same memory; the reference's do not")};
  fault.hack_family = kUnmaterialisedFamily;
  return fault;
}

absl::StatusOr<const void*> Jail::ReadPythonOutput(const nlohmann::json& places, size_t call, size_t index,
                                                   Fault& fault) {
  const nlohmann::json& place = places[call * layout_.outputs.size() + index];
  if (std::optional<Fault> found = CheckPlace(index, place)) {
    fault = *found;
    return absl::InvalidArgumentError(fault.reason);
  }
  const TensorSpec& spec = layout_.outputs[index];
  copies_.resize(layout_.outputs.size());
  std::vector<char>& copy = copies_[index];
  copy.resize(static_cast<size_t>(spec.num_bytes));
  if (spec.num_bytes == 0) return copy.data();
  const uint64_t address = static_cast<uint64_t>(Read(place, jail::Place::pointer));
  const std::vector<int64_t> strides = Integers(place, jail::Place::strides);
  const int64_t element_bytes = spec.bits / 8;
  const bool valid = IsWithin({spec.shape, strides, element_bytes}, spec.num_bytes + kGapBytesMax);
  if (valid && !spec.borrowed && SharesElements({spec.shape, strides, element_bytes})) {
    fault = {v1::VERDICT_HACK, absl::StrCat("elements of output ", index, " share memory, strides ",
                                            ShapeName(strides), "; the reference's do not")};
    fault.hack_family = kUnmaterialisedFamily;
    return absl::InvalidArgumentError(fault.reason);
  }
  const StridedTensor tensor{spec.shape, strides, element_bytes};
  absl::Status status = absl::InvalidArgumentError("strides out of range");
  if (valid) {
    status = buffers_.store->on_gpu() ? ReadFromGpu(place, tensor, copy.data())
                                      : ReadStrided(process_->pid(), address, tensor, copy.data());
  }
  if (!status.ok()) {
    fault = {v1::VERDICT_RUNTIME_ERROR, absl::StrCat("output ", index, " lies in no readable memory")};
    return status;
  }
  return copy.data();
}

absl::Status Jail::ReadFromGpu(const nlohmann::json& place, const StridedTensor& tensor, char* dense) {
  const std::string handle = Read(place, jail::Place::handle);
  if (!handle.empty()) handles_.insert(handle);
  const int64_t offset = Read(place, jail::Place::offset);
  return ReadStrided(tensor, dense, [&](int64_t num_bytes, char* to) -> absl::Status {
    if (!handle.empty()) return buffers_.store->ReadForeign(handle, offset, num_bytes, to);
    if (offset < 0 || num_bytes > buffers_.inputs->num_bytes() - offset)
      return absl::OutOfRangeError("not within the inputs");
    std::memcpy(to, buffers_.inputs->Read(offset, num_bytes), static_cast<size_t>(num_bytes));
    return absl::OkStatus();
  });
}

}  // namespace warpsmith
