#include "trainer/workers/weight_publisher.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/model_fields.h"
#include "trainer/data/seeds.h"

namespace warpsmith {
namespace {

constexpr size_t kFilesMax = 2;
constexpr absl::Duration kOfferTimeout = absl::Minutes(1);  // of a pass over the weights on a GPU

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot write weights to", path);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

std::string DtypeName(at::ScalarType dtype) {
  if (dtype == at::kHalf) return "float16";
  return dtype == at::kBFloat16 ? "bfloat16" : "float32";
}

at::ScalarType StoredDtype(PublishedDtype published, at::ScalarType trained) {
  if (published == PublishedDtype::kAsTrained) return trained;
  return published == PublishedDtype::kFloat16 ? at::kHalf : at::kBFloat16;
}

// The same for every process of a run, however its folder is written.
std::string RunPrefix(const std::filesystem::path& run_directory) {
  std::error_code ignored;
  std::filesystem::path path = std::filesystem::weakly_canonical(run_directory, ignored);
  if (!path.has_filename()) path = path.parent_path();  // "runs/a/" is "runs/a"
  return absl::StrCat("warpsmith_", absl::Hex(HashOf(path.string()), absl::kZeroPad16), "_");
}

// A worker would find out only after its old weights are gone.
absl::Status CheckFits(const Parameters& parameters, int buffer, const at::Tensor& rounded) {
  if (rounded.scalar_type() != at::kHalf || AllFiniteFloat16(rounded)) return absl::OkStatus();
  const absl::Status status = parameters.CheckFitsFloat16(buffer);
  return {status.code(), absl::StrCat("cannot publish weights in float16: ", status.message(),
                                      absl::IsOutOfRange(status) ? "; use bfloat16 workers" : "")};
}

bool Lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

}  // namespace

WeightPublisher::WeightPublisher(std::filesystem::path directory, const std::filesystem::path& run_directory)
    : directory_(std::move(directory)), run_prefix_(RunPrefix(run_directory)) {
  RemoveLeftovers();
}

WeightPublisher::~WeightPublisher() {
  while (!files_.empty()) RemoveOldest();
}

absl::StatusOr<PublishedWeights> WeightPublisher::Write(const Parameters& parameters, uint64_t policy_version,
                                                        PublishedDtype published_dtype) {
  const bool rounds = published_dtype != PublishedDtype::kAsTrained;
  const at::ScalarType dtype = StoredDtype(published_dtype, parameters.dtype());
  const std::filesystem::path path =
      directory_ / absl::StrCat(run_prefix_, getpid(), "_weights.", policy_version, ".bin");
  PublishedWeights weights{.policy_version = policy_version,
                           .path = path.string(),
                           .dtype = DtypeName(dtype),
                           .layout_sha256 = parameters.layout().Sha256(),
                           .model_fields = FieldsOf(parameters.config())};
  ASSIGN_OR_RETURN(const int file, CreateLocked(path));
  int64_t offset = 0;
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    const at::Tensor& trained = parameters.buffer(index);
    const at::Tensor values = rounds ? trained.detach().to(dtype) : trained;
    RETURN_IF_ERROR(CheckFits(parameters, index, values));
    const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
    RETURN_IF_ERROR(WriteAll(file, bytes, weights.path));
    weights.buffers.push_back({.name = parameters.layout().buffers()[index].name,
                               .offset_bytes = offset,
                               .length_bytes = static_cast<int64_t>(bytes.size()),
                               .sha256 = rounds ? "" : Sha256Hex(bytes),
                               .checksum = rounds ? ToHex(ChecksumOf(bytes)) : ""});
    offset += static_cast<int64_t>(bytes.size());
  }
  while (files_.size() > kFilesMax) RemoveOldest();
  return weights;
}

absl::StatusOr<PublishedWeights> WeightPublisher::Offer(ModelTrainer& trainer, uint64_t policy_version) {
  const std::filesystem::path socket = directory_ / absl::StrCat(run_prefix_, "weights.sock");
  ASSIGN_OR_RETURN(const OfferedMemory offered,
                   trainer.Offer(policy_version, socket, absl::Now() + kOfferTimeout));
  PublishedWeights weights{.policy_version = policy_version,
                           .transport = "cuda_memory",
                           .path = socket.string(),
                           .dtype = "bfloat16",
                           .layout_sha256 = offered.layout_sha256,
                           .model_fields = FieldsOf(trainer.layout().config())};
  for (const MemoryBuffer& buffer : offered.buffers) {
    weights.buffers.push_back({.name = buffer.name,
                               .offset_bytes = buffer.offset_bytes,
                               .length_bytes = buffer.length_bytes,
                               .checksum = buffer.checksum});
  }
  return weights;
}

// A new file, also where there was one of this version: a worker may still read that.
absl::StatusOr<int> WeightPublisher::CreateLocked(const std::filesystem::path& path) {
  std::erase_if(files_, [&](const OwnedFile& file) { return file.path == path; });
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus("cannot create", path.string());
  if (!Lock(file.get())) LogWarning(ErrnoStatus("cannot lock", path.string()).ToString());
  files_.push_back({path, std::move(file)});
  return files_.back().lock.get();
}

void WeightPublisher::RemoveOldest() {
  std::error_code ignored;
  std::filesystem::remove(files_.front().path, ignored);
  files_.pop_front();
}

// A file that can be locked has lost its owner.
void WeightPublisher::RemoveLeftovers() const {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    if (!absl::StartsWith(path.filename().string(), run_prefix_)) continue;
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file.valid() || !Lock(file.get())) continue;
    std::error_code failed;
    if (std::filesystem::remove(path, failed)) {
      LogInfo(absl::StrCat("removed ", path.string(), ", left by a trainer of this run that was killed"));
    }
  }
}

}  // namespace warpsmith
