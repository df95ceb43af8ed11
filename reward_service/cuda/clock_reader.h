// Reads a GPU's clocks by NVIDIA's management library, NVML, which is loaded at run time where there is one. For
// referees: no jail has use for it.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_CLOCK_READER_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_CLOCK_READER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/cuda/clock_reading.h"
#include "reward_service/cuda/nvml_api.h"

namespace warpsmith::cuda {

// Reads one GPU's clocks. Used by one thread at a time.
class ClockReader {
 public:
  // `uuid` as GpuFacts has it. NOT_FOUND where there is no library, or where it does not know the GPU, as of an
  // instance of MIG; FAILED_PRECONDITION for one that is too old; INTERNAL where the GPU does not tell its clocks.
  // `path` replaces the search for the library.
  static absl::StatusOr<std::unique_ptr<ClockReader>> Open(const std::string& uuid,
                                                           const std::string& path = "");
  ~ClockReader();
  ClockReader(const ClockReader&) = delete;
  ClockReader& operator=(const ClockReader&) = delete;

  // Of a GPU that is idle they may be lower than those at which it works.
  absl::StatusOr<ClockReading> Read() const;
  // What a reading took when this was opened, the median of some [us].
  double query_us() const { return query_us_; }

 private:
  explicit ClockReader(const NvmlApi& api) : api_(api) {}
  // INTERNAL with the error's name.
  absl::Status Check(NvmlResult result, const char* what) const;
  absl::Status MeasureQuery();

  const NvmlApi api_;
  NvmlDevice device_ = nullptr;
  double query_us_ = 0;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_CLOCK_READER_H_
