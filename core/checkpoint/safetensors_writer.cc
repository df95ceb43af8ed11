#include "core/checkpoint/safetensors_writer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::filesystem::path& path,
                                                            std::vector<TensorInfo> tensors,
                                                            const TensorMetadata& metadata) {
  ASSIGN_OR_RETURN(const std::string header, FormatSafetensorsHeader(tensors, metadata));
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header))));
  return SafetensorsWriter(std::move(file), std::move(tensors));
}

SafetensorsWriter::SafetensorsWriter(AtomicFile file, std::vector<TensorInfo> tensors)
    : file_(std::move(file)), tensors_(std::move(tensors)) {
  if (!tensors_.empty()) bytes_left_ = *TensorBytes(tensors_[0]);
  SkipComplete();
}

void SafetensorsWriter::SkipComplete() {
  while (current_ < tensors_.size() && bytes_left_ == 0) {
    if (++current_ < tensors_.size()) bytes_left_ = *TensorBytes(tensors_[current_]);
  }
}

absl::Status SafetensorsWriter::Write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return absl::OkStatus();
  if (current_ == tensors_.size() || tensors_[current_].name != name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor \"", AbslView(name), "\" is out of turn: ",
        current_ == tensors_.size() ? "all are complete" : "next is " + tensors_[current_].name));
  }
  if (bytes.size() > static_cast<size_t>(bytes_left_)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor \"", AbslView(name), "\" wants ", bytes_left_,
                                                   " more bytes, but is given ", bytes.size()));
  }
  RETURN_IF_ERROR(file_.Append(bytes));
  bytes_left_ -= static_cast<int64_t>(bytes.size());
  SkipComplete();
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish() {
  if (current_ != tensors_.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("tensor \"", tensors_[current_].name, "\" still wants ", bytes_left_, " bytes"));
  }
  return file_.Commit();
}

absl::Status WriteSafetensors(const std::filesystem::path& path, const std::vector<TensorInfo>& tensors,
                              const TensorMetadata& metadata, const TensorSource& source) {
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, tensors, metadata));
  for (const TensorInfo& tensor : tensors) {
    const auto sink = [&](std::span<const std::byte> bytes) { return writer.Write(tensor.name, bytes); };
    RETURN_IF_ERROR(source(tensor, sink));
  }
  return writer.Finish();
}

}  // namespace warpsmith
