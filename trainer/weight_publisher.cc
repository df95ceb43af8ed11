#include "trainer/weight_publisher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr size_t kFilesMax = 2;

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot write weights to", path);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

std::string DtypeName(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bfloat16" : "float32"; }

}  // namespace

WeightPublisher::WeightPublisher(std::filesystem::path directory) : directory_(std::move(directory)) {}

WeightPublisher::~WeightPublisher() {
  std::error_code ignored;
  for (const auto& file : files_) std::filesystem::remove(file, ignored);
}

absl::StatusOr<PublishedWeights> WeightPublisher::Write(const Parameters& parameters,
                                                        uint64_t policy_version) {
  const std::filesystem::path path =
      directory_ / absl::StrCat("warpsmith_", getpid(), "_weights.", policy_version, ".bin");
  PublishedWeights weights{.policy_version = policy_version,
                           .path = path.string(),
                           .dtype = DtypeName(parameters.dtype()),
                           .layout_sha256 = parameters.layout().Sha256()};
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus("cannot create", weights.path);
  if (std::find(files_.begin(), files_.end(), path) == files_.end()) files_.push_back(path);
  int64_t offset = 0;
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    const std::string_view bytes = parameters.BufferBytes(index);
    RETURN_IF_ERROR(WriteAll(file.get(), bytes, weights.path));
    Sha256 digest;
    digest.Update(bytes);
    weights.buffers.push_back({.name = parameters.layout().buffers()[index].name,
                               .offset_bytes = offset,
                               .length_bytes = static_cast<int64_t>(bytes.size()),
                               .sha256 = digest.HexDigest()});
    offset += static_cast<int64_t>(bytes.size());
  }
  for (; files_.size() > kFilesMax; files_.pop_front()) {
    std::error_code ignored;
    std::filesystem::remove(files_.front(), ignored);
  }
  return weights;
}

}  // namespace warpsmith
