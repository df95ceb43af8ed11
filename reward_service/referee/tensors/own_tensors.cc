#include "reward_service/referee/tensors/own_tensors.h"

#include "reward_service/referee/tensors/tensor_store.h"

namespace warpsmith {

OwnTensors::OwnTensors() = default;
OwnTensors::OwnTensors(std::unique_ptr<char[]> on_host) : on_host_(std::move(on_host)) {}
OwnTensors::OwnTensors(std::unique_ptr<TensorMemory> on_gpu) : on_gpu_(std::move(on_gpu)) {}
OwnTensors::OwnTensors(OwnTensors&&) noexcept = default;
OwnTensors& OwnTensors::operator=(OwnTensors&&) noexcept = default;
OwnTensors::~OwnTensors() = default;

const char* OwnTensors::Read(int64_t offset, int64_t num_bytes) const {
  return on_host_ != nullptr ? on_host_.get() + offset : on_gpu_->Read(offset, num_bytes);
}

}  // namespace warpsmith
