// Puts weights where workers find them: in a file, or in the memory of a GPU of the host.
#ifndef WARPSMITH_TRAINER_WORKERS_WEIGHT_PUBLISHER_H_
#define WARPSMITH_TRAINER_WORKERS_WEIGHT_PUBLISHER_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "core/model/training/model_trainer.h"
#include "trainer/workers/published_weights.h"

namespace warpsmith {

// Types of the values in a file.
enum class PublishedDtype {
  // As the trainer has them; buffers have a SHA-256.
  kAsTrained,
  // Rounded, for workers that compute with it: half the bytes. Buffers have a checksum, which takes less time.
  kBfloat16,
  kFloat16,
};

// One file a version: the flat buffers of the layout one after the other, as they lie in memory. The file of
// the version before stays, for a worker that still reads it; older ones are removed, as are all when this is
// destroyed. A process that is killed leaves its files behind: the next one of the same run removes them. A
// worker that has such a file open reads it to its end.
class WeightPublisher {
 public:
  // Files go into `directory`, which must exist; a folder in memory, as /dev/shm, is quickest. Their names
  // carry a hash of `run_directory`, the run's folder. Removes files of this run that no living process owns.
  WeightPublisher(std::filesystem::path directory, const std::filesystem::path& run_directory);
  WeightPublisher(const WeightPublisher&) = delete;
  WeightPublisher& operator=(const WeightPublisher&) = delete;
  ~WeightPublisher();

  // Writes version `policy_version` and says where it lies. RESOURCE_EXHAUSTED when there is no room,
  // and for kFloat16 the errors of Parameters::CheckFitsFloat16, with the way out.
  absl::StatusOr<PublishedWeights> Write(const Parameters& parameters, uint64_t policy_version,
                                         PublishedDtype dtype = PublishedDtype::kAsTrained);

  // Offers version `policy_version` to workers of this host in the memory where it lies, through a socket in the
  // directory. It must stay there until all workers have it. REQUIRES: trainer.can_offer(). The errors of
  // ModelTrainer::Offer.
  absl::StatusOr<PublishedWeights> Offer(ModelTrainer& trainer, uint64_t policy_version);

 private:
  // The lock says that its owner lives: the system drops it with the process, however that ends.
  struct OwnedFile {
    std::filesystem::path path;
    UniqueFd lock;
  };

  void RemoveLeftovers() const;
  absl::StatusOr<int> CreateLocked(const std::filesystem::path& path);
  void RemoveOldest();

  const std::filesystem::path directory_;
  const std::string run_prefix_;  // of all file names of this run
  std::deque<OwnedFile> files_;   // oldest first
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_WEIGHT_PUBLISHER_H_
