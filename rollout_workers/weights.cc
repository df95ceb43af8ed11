#include "rollout_workers/weights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/model/hugging_face_weights.h"
#include "core/model/parameters.h"

namespace warpsmith {
namespace {

// Of the digests of all buffers, in order.
std::string DigestOfDigests(const std::vector<std::string>& digests) {
  Sha256 all;
  for (const std::string& digest : digests) all.Update(digest);
  return all.HexDigest();
}

std::string DigestOf(const Parameters& parameters) {
  std::vector<std::string> digests;
  for (int i = 0; i < parameters.num_buffers(); ++i) digests.push_back(Sha256Hex(parameters.BufferBytes(i)));
  return DigestOfDigests(digests);
}

absl::StatusOr<at::ScalarType> ParseDtype(const std::string& dtype) {
  if (dtype == "float32") return at::kFloat;
  if (dtype == "bfloat16") return at::kBFloat16;
  return absl::InvalidArgumentError(
      absl::StrCat("The manifest's dtype is \"", Escape(dtype, 64), "\"; give float32 or bfloat16"));
}

absl::Status CheckManifest(const OfferedWeights& published, const Parameters& parameters,
                           int64_t file_bytes) {
  const std::vector<ParameterBuffer>& expected = parameters.layout().buffers();
  if (published.buffers.size() != expected.size()) {
    return absl::InvalidArgumentError(absl::StrCat("The manifest has ", published.buffers.size(),
                                                   " buffers; the layout has ", expected.size()));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const OfferedBuffer& buffer = published.buffers[i];
    const auto length = static_cast<int64_t>(parameters.BufferBytes(static_cast<int>(i)).size());
    if (buffer.name != expected[i].name || buffer.length_bytes != length) {
      return absl::InvalidArgumentError(
          absl::StrCat("Buffer ", i, " of the manifest is \"", Escape(buffer.name, 64), "\" of ",
                       buffer.length_bytes, " bytes; the layout has \"", expected[i].name, "\" of ", length));
    }
    if (buffer.offset_bytes < 0 || buffer.offset_bytes > file_bytes - length) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Buffer \"", buffer.name, "\" lies at ", buffer.offset_bytes, " to ", buffer.offset_bytes + length,
          "; ", published.path.string(), " has ", file_bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

// Read, not mapped: a file that its writer cuts short meanwhile is then an error, not a SIGBUS.
absl::Status ReadAt(int fd, int64_t offset, const std::filesystem::path& path, std::string* bytes) {
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t count =
        pread(fd, bytes->data() + done, bytes->size() - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot read", path.string());
    if (count == 0) {
      return absl::DataLossError(
          absl::StrCat(path.string(), " ends at byte ", offset + done, ": it was cut short"));
    }
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status ReadBuffers(const UniqueFd& file, const OfferedWeights& published, Parameters* parameters) {
  std::string bytes;
  for (size_t i = 0; i < published.buffers.size(); ++i) {
    const OfferedBuffer& buffer = published.buffers[i];
    bytes.resize(buffer.length_bytes);
    RETURN_IF_ERROR(ReadAt(file.get(), buffer.offset_bytes, published.path, &bytes));
    if (const std::string sha256 = Sha256Hex(bytes); sha256 != buffer.sha256) {
      return absl::DataLossError(
          absl::StrCat("Buffer \"", buffer.name, "\" of version ", published.policy_version, " has SHA-256 ",
                       sha256, "; the manifest says ", Escape(buffer.sha256, 64), ": publish it again"));
    }
    RETURN_IF_ERROR(parameters->SetBufferBytes(static_cast<int>(i), bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FileBytes(const UniqueFd& file, const std::filesystem::path& path) {
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return ErrnoStatus("cannot examine", path.string());
  return static_cast<int64_t>(status.st_size);
}

absl::StatusOr<LoadedWeights> LoadChecked(const ParameterLayout& layout, const OfferedWeights& published) {
  ASSIGN_OR_RETURN(const at::ScalarType dtype, ParseDtype(published.dtype));
  const UniqueFd file(open(published.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("cannot open the weights", published.path.string());
  ASSIGN_OR_RETURN(const int64_t file_bytes, FileBytes(file, published.path));
  Parameters parameters(layout, dtype);
  RETURN_IF_ERROR(CheckManifest(published, parameters, file_bytes));
  RETURN_IF_ERROR(ReadBuffers(file, published, &parameters));
  if (dtype != at::kFloat) parameters = parameters.Clone(at::kFloat);  // what the decoder's cache is made for
  return LoadedWeights{.policy_version = published.policy_version,
                       .sha256 = CombinedSha256(published),
                       .parameters = std::make_shared<const Parameters>(std::move(parameters))};
}

}  // namespace

LoadedWeights RandomWeights(const ModelConfig& config, uint64_t seed) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(seed);
  return InitialWeights(std::move(parameters));
}

absl::StatusOr<LoadedWeights> HuggingFaceWeights(const ModelConfig& config,
                                                 const std::filesystem::path& directory) {
  Parameters parameters{ParameterLayout(config)};
  RETURN_IF_ERROR(LoadHuggingFaceWeights(directory, parameters));
  return InitialWeights(std::move(parameters));
}

LoadedWeights HuggingFaceDirectory(const std::filesystem::path& directory) {
  return {.policy_version = 0, .hugging_face_directory = directory};
}

LoadedWeights InitialWeights(Parameters parameters) {
  LoadedWeights weights{.policy_version = 0, .sha256 = DigestOf(parameters)};
  weights.parameters = std::make_shared<const Parameters>(std::move(parameters));
  return weights;
}

absl::StatusOr<LoadedWeights> LoadOfferedWeights(const ModelConfig& config, const OfferedWeights& published) {
  const ParameterLayout layout(config);
  if (published.layout_sha256 != layout.Sha256()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Version ", published.policy_version, " has the layout ", Escape(published.layout_sha256, 64),
        " and this worker's model ", layout.Sha256(), ": start both with the same model section"));
  }
  try {
    return LoadChecked(layout, published);
  } catch (const std::exception& error) {  // LibTorch's, when memory is short
    return absl::ResourceExhaustedError(absl::StrCat(
        "No room for the weights of version ", published.policy_version, ": ", Escape(error.what(), 256)));
  }
}

std::string CombinedSha256(const OfferedWeights& published) {
  std::vector<std::string> digests;
  for (const OfferedBuffer& buffer : published.buffers) digests.push_back(buffer.sha256);
  return DigestOfDigests(digests);
}

std::string LayoutSha256(const ModelConfig& config) { return ParameterLayout(config).Sha256(); }

}  // namespace warpsmith
