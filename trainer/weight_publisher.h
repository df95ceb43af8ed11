// Writes weights where workers on this machine or file system find them.
#ifndef WARPSMITH_TRAINER_WEIGHT_PUBLISHER_H_
#define WARPSMITH_TRAINER_WEIGHT_PUBLISHER_H_

#include <cstdint>
#include <deque>
#include <filesystem>

#include "absl/status/statusor.h"
#include "core/model/parameters.h"
#include "trainer/published_weights.h"

namespace warpsmith {

// One file a version: the flat buffers of the layout one after the other, as they lie in memory. The file of
// the version before stays, for a worker that still reads it; older ones are removed, as are all when this is
// destroyed.
class WeightPublisher {
 public:
  // Files go into `directory`, which must exist; a folder in memory, as /dev/shm, is quickest.
  explicit WeightPublisher(std::filesystem::path directory);
  WeightPublisher(const WeightPublisher&) = delete;
  WeightPublisher& operator=(const WeightPublisher&) = delete;
  ~WeightPublisher();

  // Writes version `policy_version` and says where it lies. RESOURCE_EXHAUSTED when there is no room.
  absl::StatusOr<PublishedWeights> Write(const Parameters& parameters, uint64_t policy_version);

 private:
  const std::filesystem::path directory_;
  std::deque<std::filesystem::path> files_;  // oldest first
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WEIGHT_PUBLISHER_H_
