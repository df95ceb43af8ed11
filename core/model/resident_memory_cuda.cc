#include "core/model/resident_memory_cuda.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"
#include "core/model/memory_driver_cuda.h"

namespace warpsmith {

struct ResidentMemory::State {
  DriverMapping mapping;

  absl::Status Fill();
};

absl::StatusOr<std::unique_ptr<ResidentMemory>> ResidentMemory::Reserve(int device, int64_t bytes) {
  ASSIGN_OR_RETURN(const DriverMapping mapping, DriverMapping::Reserve(device, bytes, /*shareable=*/false));
  return std::unique_ptr<ResidentMemory>(new ResidentMemory(std::make_unique<State>(State{mapping})));
}

ResidentMemory::ResidentMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}

ResidentMemory::~ResidentMemory() {
  Free();
  state_->mapping.FreeAddresses();
}

absl::Status ResidentMemory::State::Fill() {
  RETURN_IF_ERROR(mapping.Create());
  RETURN_IF_ERROR(mapping.Map());
  void* const memory = reinterpret_cast<void*>(mapping.address);
  RETURN_IF_ERROR(CudaStatus(cudaMemset(memory, 0, mapping.bytes), "cudaMemset of memory taken again"));
  return CudaStatus(cudaStreamSynchronize(nullptr), "cudaMemset of memory taken again");
}

absl::Status ResidentMemory::Allocate() {
  if (resident()) return absl::OkStatus();
  absl::Status status = state_->Fill();
  if (!status.ok()) Free();
  return status;
}

void ResidentMemory::Free() {
  if (resident()) cudaDeviceSynchronize();
  state_->mapping.Unmap();
}

std::byte* ResidentMemory::get() const { return reinterpret_cast<std::byte*>(state_->mapping.address); }
bool ResidentMemory::resident() const { return state_->mapping.mapped; }

}  // namespace warpsmith
