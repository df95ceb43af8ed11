#include "trainer/tensor_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;  // of the data, by padding the header with spaces

std::string HeaderOf(const std::vector<TensorBytes>& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  size_t offset = 0;
  for (const TensorBytes& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
}

// Writes all bytes and adds them to the digest.
absl::Status Put(int fd, std::string_view bytes, const std::string& path, Sha256& digest) {
  digest.Update(bytes);
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot write", path);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status Malformed(const std::filesystem::path& path, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(path.string(), " is no valid safetensors file: ", reason));
}

}  // namespace

absl::StatusOr<std::string> WriteTensorFile(const std::filesystem::path& path,
                                            const std::vector<TensorBytes>& tensors) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus("cannot create", path.string());
  Sha256 digest;
  RETURN_IF_ERROR(Put(file.get(), HeaderOf(tensors), path.string(), digest));
  for (const TensorBytes& tensor : tensors)
    RETURN_IF_ERROR(Put(file.get(), tensor.bytes, path.string(), digest));
  if (fsync(file.get()) != 0) return ErrnoStatus("cannot sync", path.string());
  return digest.HexDigest();
}

absl::StatusOr<std::unique_ptr<TensorFile>> ReadTensorFile(const std::filesystem::path& path) {
  auto file = std::make_unique<TensorFile>();
  ASSIGN_OR_RETURN(file->content, ReadFile(path, int64_t{1} << 40));
  uint64_t length = 0;
  if (file->content.size() < kLengthBytes) return Malformed(path, "it is too short");
  std::memcpy(&length, file->content.data(), kLengthBytes);
  if (length > file->content.size() - kLengthBytes) return Malformed(path, "its header is cut");
  const std::string_view content = file->content;
  const std::string_view data = content.substr(kLengthBytes + length);
  try {
    const auto header = nlohmann::json::parse(content.substr(kLengthBytes, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
      if (begin > end || end > data.size())
        return Malformed(path, absl::StrCat("tensor ", name, " lies outside"));
      file->tensors[name] = {.name = name,
                             .dtype = entry.at("dtype"),
                             .shape = entry.at("shape"),
                             .bytes = data.substr(begin, end - begin)};
    }
  } catch (const nlohmann::json::exception& error) {
    return Malformed(path, Escape(error.what(), 256));
  }
  return file;
}

}  // namespace warpsmith
