// The receiving side: weights in the GPU memory of another process of the host, mapped here.
#ifndef WARPSMITH_CORE_MODEL_MAPPED_WEIGHTS_CUDA_H_
#define WARPSMITH_CORE_MODEL_MAPPED_WEIGHTS_CUDA_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/offered_memory.h"
#include "core/model/parameter_layout.h"
#include "core/model/shared_memory_cuda.h"
#include "core/model/weight_source.h"

namespace warpsmith {

// Holds the sender's memory until it is destroyed, also where the sender ends.
class MappedWeights final : public WeightSource {
 public:
  // Fetches and maps what `offered` names for GPU `device` of this process, and checks it where it lies: what is wrong
  // is known before any weights in use are given up. The errors of CheckOfferedMemory, FetchDescriptor,
  // SharedMemory::Map and CheckArrived; FAILED_PRECONDITION: other weights lie there now.
  static absl::StatusOr<std::unique_ptr<MappedWeights>> Open(const ModelConfig& config, OfferedMemory offered,
                                                             int device, absl::Time deadline);
  ~MappedWeights() override;
  MappedWeights(const MappedWeights&) = delete;
  MappedWeights& operator=(const MappedWeights&) = delete;

  int64_t num_elements() const override;
  absl::Status CopyTo(uint16_t* elements, int device, absl::Time deadline) override;

 private:
  MappedWeights(const ModelConfig& config, OfferedMemory offered, int device,
                std::unique_ptr<SharedMemory> memory);

  absl::Status Check(absl::Time deadline);

  const ParameterLayout layout_;
  const OfferedMemory offered_;
  const int device_;
  std::unique_ptr<SharedMemory> memory_;
  bool lost_ = false;  // the device may still use the memory
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_MAPPED_WEIGHTS_CUDA_H_
