// Memory of the host, in pages as large as the kernel makes them.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_HOST_PAGES_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_HOST_PAGES_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace warpsmith::cuda {

// No child of this process has them: what a GPU writes there would go to the pages that a child shares. Movable.
class HostPages {
 public:
  // At least one byte. Zeros, every page present: that is most of the time that a driver takes to lock new memory, and
  // here it holds none of its locks. RESOURCE_EXHAUSTED where there are no addresses left. Where the host lacks memory
  // that it has promised, the kernel kills a process instead.
  static absl::StatusOr<HostPages> Map(int64_t num_bytes);

  HostPages() = default;
  ~HostPages();
  HostPages(HostPages&& other) noexcept { *this = std::move(other); }
  HostPages& operator=(HostPages&& other) noexcept;

  char* data() const { return data_; }
  int64_t num_bytes() const { return num_bytes_; }  // 0 of one that was made without Map()

 private:
  char* data_ = nullptr;
  int64_t num_bytes_ = 0;
};

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_HOST_PAGES_H_
