// The sending side: weights in a GPU's memory that other processes of the host copy.
#ifndef WARPSMITH_CORE_MODEL_SHARED_WEIGHTS_CUDA_H_
#define WARPSMITH_CORE_MODEL_SHARED_WEIGHTS_CUDA_H_

#include <cuda_bf16.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/descriptor_server.h"
#include "core/model/offered_memory.h"
#include "core/model/parameter_layout.h"
#include "core/model/shared_memory_cuda.h"

namespace warpsmith {

// One buffer for all versions, in turn: write, Offer, wait until every receiver has its copy, Withdraw. One thread at a
// time.
class SharedWeights {
 public:
  // Zeros on `device`, which becomes the current one. The errors of SharedMemory::Allocate.
  static absl::StatusOr<std::unique_ptr<SharedWeights>> Create(const ModelConfig& config, int device);
  // What receivers have mapped stays with them.
  ~SharedWeights();
  SharedWeights(const SharedWeights&) = delete;
  SharedWeights& operator=(const SharedWeights&) = delete;

  const ParameterLayout& layout() const { return layout_; }
  // Element 0 of buffer 0; elements of all buffers, and where buffer `index` begins among them. To be written while
  // nothing is offered.
  __nv_bfloat16* base() const { return reinterpret_cast<__nv_bfloat16*>(memory_->get()); }
  int64_t size() const { return offsets_.back(); }
  int64_t buffer_offset(int index) const { return offsets_.at(index); }

  // Makes checksums of what lies there after the work of the default stream, and hands the memory to each process that
  // connects to `socket_path`, which this makes. What was offered before is withdrawn. The errors of ChecksumBuffers
  // and of DescriptorServer::Start.
  absl::StatusOr<OfferedMemory> Offer(uint64_t version, const std::filesystem::path& socket_path,
                                      absl::Time deadline);
  // It cannot be fetched any more. A receiver that has fetched but not copied sees later writes by the checksum.
  void Withdraw() { server_.reset(); }

 private:
  SharedWeights(const ModelConfig& config, int device, std::unique_ptr<SharedMemory> memory);

  const ParameterLayout layout_;
  const std::vector<int64_t> offsets_;
  const int device_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<DescriptorServer> server_;
  bool lost_ = false;  // the device may still use the memory
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_SHARED_WEIGHTS_CUDA_H_
