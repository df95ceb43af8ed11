#include "core/checkpoint/safetensors_file.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

uint64_t ReadLength(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kSafetensorsLengthBytes; ++i) length |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return length;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(std::span<const std::byte> file,
                                                        std::span<const std::byte>* data) {
  if (file.size() < kSafetensorsLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", file.size(), " bytes, too few for a safetensors file"));
  }
  const uint64_t length = ReadLength(file);
  const std::span<const std::byte> rest = file.subspan(kSafetensorsLengthBytes);
  if (length > kSafetensorsHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("begins with a header of ", length, " bytes; at most ",
                                                   kSafetensorsHeaderBytesMax,
                                                   " are allowed: is it safetensors?"));
  }
  if (length > rest.size()) {
    return absl::InvalidArgumentError(absl::StrCat("was cut short: its header has ", length,
                                                   " bytes, but only ", rest.size(), " are left"));
  }
  const std::string_view json(reinterpret_cast<const char*>(rest.data()), length);
  *data = rest.subspan(length);
  return ParseSafetensorsHeader(json, static_cast<int64_t>(data->size()));
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  std::span<const std::byte> data;
  absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(file.bytes(), &data);
  if (!header.ok()) {
    return absl::Status(header.status().code(), absl::StrCat(path.string(), ": ", header.status().message()));
  }
  return SafetensorsFile(std::move(file), *std::move(header), data);
}

SafetensorsFile::SafetensorsFile(MappedFile file, SafetensorsHeader header, std::span<const std::byte> data)
    : file_(std::move(file)), metadata_(std::move(header.metadata)) {
  tensors_.reserve(header.entries.size());
  for (SafetensorsHeader::Entry& entry : header.entries) {
    const auto begin = static_cast<size_t>(entry.begin), end = static_cast<size_t>(entry.end);
    index_by_name_[entry.info.name] = tensors_.size();
    tensors_.push_back({std::move(entry.info), data.subspan(begin, end - begin)});
  }
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  const auto found = index_by_name_.find(AbslView(name));
  return found == index_by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace warpsmith
