#include "rollout_workers/weights_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/parameters.h"

namespace warpsmith {
namespace {

constexpr int64_t kThreadsMax = 8;
constexpr int64_t kChunkBytes = int64_t{4} << 20;  // read and then hashed while it is in the cache

absl::StatusOr<at::ScalarType> ParseDtype(const std::string& dtype) {
  if (dtype == "float32") return at::kFloat;
  if (dtype == "bfloat16") return at::kBFloat16;
  if (dtype == "float16") return at::kHalf;
  return absl::InvalidArgumentError(
      absl::StrCat("The manifest's dtype is \"", Escape(dtype, 64), "\"; give float32, bfloat16 or float16"));
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
      return absl::InvalidArgumentError(absl::StrCat("Buffer \"", buffer.name, "\" of ", length,
                                                     " bytes lies at ", buffer.offset_bytes, "; ",
                                                     published.path.string(), " has ", file_bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

// Read, not mapped: a file that its writer cuts short meanwhile is then an error, not a SIGBUS.
absl::Status ReadAt(int fd, int64_t offset, const std::filesystem::path& path, char* bytes, int64_t size) {
  for (int64_t done = 0; done < size;) {
    const ssize_t count = pread(fd, bytes + done, static_cast<size_t>(size - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot read", path.string());
    if (count == 0) {
      return absl::DataLossError(
          absl::StrCat(path.string(), " ends at byte ", offset + done, ": it was cut short"));
    }
    done += count;
  }
  return absl::OkStatus();
}

// The buffers of a file, each read and checked by the thread that comes to it.
class Reading {
 public:
  Reading(int fd, const OfferedWeights& published, Parameters* parameters, absl::Time deadline)
      : fd_(fd), published_(published), deadline_(deadline), results_(published.buffers.size()) {
    for (int i = 0; i < parameters->num_buffers(); ++i) {
      buffers_.push_back(static_cast<char*>(parameters->buffer(i).mutable_data_ptr()));
    }
  }

  absl::Status Run() {
    const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < std::min({kThreadsMax, cores, std::ssize(buffers_)}); ++i) {
      threads.emplace_back([this] {
        pthread_setname_np(pthread_self(), "ws-weights");
        Work();
      });
    }
    Work();
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& result : results_) RETURN_IF_ERROR(result);
    return absl::OkStatus();
  }

 private:
  void Work() {
    for (size_t i = next_++; i < buffers_.size() && !failed_; i = next_++) {
      results_[i] = Read(published_.buffers[i], buffers_[i]);
      if (!results_[i].ok()) failed_ = true;
    }
  }

  absl::Status Read(const OfferedBuffer& buffer, char* bytes) const {
    Sha256 sha256;
    MemoryChecksum checksum;
    const bool has_checksum = !buffer.checksum.empty();
    for (int64_t done = 0; done < buffer.length_bytes; done += kChunkBytes) {
      if (absl::Now() > deadline_) {
        return absl::DeadlineExceededError(absl::StrCat(published_.path.string(), " was not read in time"));
      }
      const int64_t size = std::min(kChunkBytes, buffer.length_bytes - done);
      RETURN_IF_ERROR(ReadAt(fd_, buffer.offset_bytes + done, published_.path, bytes + done, size));
      const std::string_view chunk(bytes + done, static_cast<size_t>(size));
      if (has_checksum) checksum = SumOf(checksum, ChecksumOf(chunk, static_cast<uint64_t>(done) / 8));
      if (!has_checksum) sha256.Update(chunk);
    }
    const std::string found = has_checksum ? ToHex(checksum) : sha256.HexDigest();
    const std::string& said = has_checksum ? buffer.checksum : buffer.sha256;
    if (found == said) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("Buffer \"", buffer.name, "\" of version ",
                                            published_.policy_version, " has ",
                                            has_checksum ? "the checksum " : "SHA-256 ", found,
                                            "; the manifest says ", Escape(said, 64), ": publish it again"));
  }

  const int fd_;
  const OfferedWeights& published_;
  const absl::Time deadline_;
  std::vector<char*> buffers_;
  std::vector<absl::Status> results_;  // each written by the thread that reads its buffer
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
};

absl::StatusOr<int64_t> FileBytes(const UniqueFd& file, const std::filesystem::path& path) {
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return ErrnoStatus("cannot examine", path.string());
  return static_cast<int64_t>(status.st_size);
}

void LogRate(const OfferedWeights& published, absl::Time began) {
  int64_t bytes = 0;
  for (const OfferedBuffer& buffer : published.buffers) bytes += buffer.length_bytes;
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  LogInfo(absl::StrFormat("read and checked %.2f GB of %s weights of version %d in %.2f s, %.1f GB/s",
                          static_cast<double>(bytes) * 1e-9, published.dtype, published.policy_version,
                          seconds, static_cast<double>(bytes) * 1e-9 / seconds));
}

absl::StatusOr<LoadedWeights> LoadChecked(const ParameterLayout& layout, const OfferedWeights& published,
                                          DtypeInMemory wanted, absl::Time deadline) {
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const at::ScalarType dtype, ParseDtype(published.dtype));
  const UniqueFd file(open(published.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("cannot open the weights", published.path.string());
  ASSIGN_OR_RETURN(const int64_t file_bytes, FileBytes(file, published.path));
  Parameters parameters(layout, dtype);
  RETURN_IF_ERROR(CheckManifest(published, parameters, file_bytes));
  RETURN_IF_ERROR(Reading(file.get(), published, &parameters, deadline).Run());
  LogRate(published, began);
  if (wanted == DtypeInMemory::kFloat32 && dtype != at::kFloat) parameters = parameters.Clone(at::kFloat);
  return LoadedWeights{.policy_version = published.policy_version,
                       .sha256 = CombinedSha256(published),
                       .parameters = std::make_shared<const Parameters>(std::move(parameters))};
}

}  // namespace

absl::StatusOr<LoadedWeights> LoadWeightsFile(const ModelConfig& config, const OfferedWeights& published,
                                              DtypeInMemory dtype, absl::Time deadline) {
  const ParameterLayout layout(config);
  if (published.layout_sha256 != layout.Sha256()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Version ", published.policy_version, " has the layout ", Escape(published.layout_sha256, 64),
        " and this worker's model ", layout.Sha256(), ": start both with the same model section"));
  }
  try {
    return LoadChecked(layout, published, dtype, deadline);
  } catch (const std::exception& error) {  // LibTorch's, when memory is short
    return absl::ResourceExhaustedError(absl::StrCat(
        "No room for the weights of version ", published.policy_version, ": ", Escape(error.what(), 256)));
  }
}

}  // namespace warpsmith
