#include "core/model/shared_memory_cuda.h"

#include <fcntl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/memory_driver_cuda.h"

namespace warpsmith {

struct SharedMemory::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    mapping.Unmap();
    mapping.FreeAddresses();
  }

  DriverMapping mapping;
};

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Allocate(int device, int64_t bytes) {
  auto state = std::make_unique<State>();
  ASSIGN_OR_RETURN(state->mapping, DriverMapping::Reserve(device, bytes, /*shareable=*/true));
  RETURN_IF_ERROR(state->mapping.Create());
  RETURN_IF_ERROR(state->mapping.Map());
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(state)));
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Map(int device, const UniqueFd& descriptor,
                                                                int64_t bytes) {
  auto state = std::make_unique<State>();
  ASSIGN_OR_RETURN(state->mapping, DriverMapping::Reserve(device, bytes, /*shareable=*/true));
  DriverMapping& mapping = state->mapping;
  // The driver takes the number of the descriptor in the place of a pointer.
  void* const number = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor.get()));
  const CUresult imported =
      mapping.driver.import_handle(&mapping.handle, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (imported == CUDA_ERROR_INVALID_VALUE) {
    return absl::InvalidArgumentError("the descriptor that came is not of memory of a GPU");
  }
  RETURN_IF_ERROR(MemoryDriverStatus(imported, "cuMemImportFromShareableHandle", mapping.bytes));
  mapping.has_handle = true;
  const absl::Status mapped = mapping.Map();
  if (!mapped.ok() && !mapping.mapped) {
    return absl::InvalidArgumentError(absl::StrCat("the memory that was offered is less than ", bytes,
                                                   " bytes, or GPU ", device,
                                                   " does not reach it: ", std::string(mapped.message())));
  }
  RETURN_IF_ERROR(mapped);
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(state)));
}

SharedMemory::SharedMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}
SharedMemory::~SharedMemory() = default;

absl::StatusOr<UniqueFd> SharedMemory::Export() const {
  const DriverMapping& mapping = state_->mapping;
  int descriptor = -1;
  RETURN_IF_ERROR(MemoryDriverStatus(
      mapping.driver.export_handle(&descriptor, mapping.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "cuMemExportToShareableHandle", mapping.bytes));
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return UniqueFd(descriptor);
}

std::byte* SharedMemory::get() const { return reinterpret_cast<std::byte*>(state_->mapping.address); }

}  // namespace warpsmith
