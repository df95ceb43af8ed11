// Tensors with gaps in another process's memory, read without touching what lies between their elements.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_STRIDED_MEMORY_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_STRIDED_MEMORY_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace warpsmith {

// Extents and strides, not negative, in elements; as many of one as of the other.
struct StridedTensor {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t element_bytes = 0;
};

// Whether two indices can mean the same address: an extent over 1 steps by less than what the smaller steps
// cover.
bool SharesElements(const StridedTensor& tensor);

// Whether no stride is negative and the elements span no more than so many bytes.
bool IsWithin(const StridedTensor& tensor, int64_t num_bytes_max);

// Whether elements lie one behind the other in row-major order. Strides of other number than extents are not dense.
bool IsDense(const StridedTensor& tensor);

// Copies a tensor of at least one element, whose first lies at `address` of a process that does not run, into
// dense order. Costs as much as the pages that its elements lie on, on both sides. UNAVAILABLE or the like:
// they are not all readable.
absl::Status ReadStrided(pid_t pid, uint64_t address, const StridedTensor& tensor, char* dense);

// The same of memory that no process has mapped: `read` copies bytes from the tensor's first element on, and
// is asked once, for as many as reach to the end of the last one. Its error.
absl::Status ReadStrided(const StridedTensor& tensor, char* dense,
                         const std::function<absl::Status(int64_t num_bytes, char* to)>& read);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_STRIDED_MEMORY_H_
