// Tensors that no program can reach: draws, with which what programs were given and gave is compared.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_OWN_TENSORS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_OWN_TENSORS_H_

#include <cstdint>
#include <memory>
#include <utility>

namespace warpsmith {

class TensorMemory;

// Bytes in the host's memory, where the allocator hands the pages of a retired task to the next one (fresh
// pages, zeroed by the kernel, cost more than a draw itself); or on a GPU, where the programs compute.
class OwnTensors {
 public:
  OwnTensors();
  OwnTensors(std::unique_ptr<char[]> on_host);  // NOLINT: the host's bytes are tensors
  explicit OwnTensors(std::unique_ptr<TensorMemory> on_gpu);
  OwnTensors(OwnTensors&&) noexcept;
  OwnTensors& operator=(OwnTensors&&) noexcept;
  ~OwnTensors();

  // Null for those on a GPU.
  char* get() const { return on_host_.get(); }
  // Null for those of the host.
  TensorMemory* on_gpu() const { return on_gpu_.get(); }
  // Bytes on the host, valid until the next call, on a GPU for any tensors of the same store.
  const char* Read(int64_t offset, int64_t num_bytes) const;

 private:
  std::unique_ptr<char[]> on_host_;
  std::unique_ptr<TensorMemory> on_gpu_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_OWN_TENSORS_H_
