#include "reward_service/referee/process/strided_memory.h"

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kPageBytes = 4096;

using Steps = std::vector<std::pair<int64_t, int64_t>>;  // by how far, and how many places

// Of extents over 1, the nearest first; in elements.
Steps SortedSteps(const StridedTensor& tensor) {
  Steps steps;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] > 1) steps.emplace_back(tensor.strides[d], tensor.shape[d]);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// A tensor as stretches of memory at regular places: what lies nearer to its neighbour than a page is one
// stretch, for whole pages are brought in anyway.
struct Stretches {
  int64_t num_bytes = 0;  // of each
  Steps steps;            // between their starts, in bytes
};

Stretches FindStretches(const StridedTensor& tensor) {
  Stretches stretches{tensor.element_bytes, {}};
  for (const auto& [stride, extent] : SortedSteps(tensor)) {
    const int64_t step = stride * tensor.element_bytes;
    if (stretches.steps.empty() && step - stretches.num_bytes < kPageBytes) {
      stretches.num_bytes += (extent - 1) * step;
    } else {
      stretches.steps.emplace_back(step, extent);
    }
  }
  return stretches;
}

// To the places in `to` that they have from `address` on.
absl::Status ReadStretches(pid_t pid, uint64_t address, const Stretches& stretches, char* to) {
  std::vector<int64_t> index(stretches.steps.size(), 0);
  for (bool more = true; more;) {
    std::vector<iovec> local;
    std::vector<iovec> remote;
    while (more && local.size() < IOV_MAX) {
      int64_t offset = 0;
      for (size_t d = 0; d < index.size(); ++d) offset += index[d] * stretches.steps[d].first;
      const auto num_bytes = static_cast<size_t>(stretches.num_bytes);
      local.push_back({to + offset, num_bytes});
      remote.push_back({reinterpret_cast<void*>(address + static_cast<uint64_t>(offset)), num_bytes});
      size_t d = 0;
      while (d < index.size() && ++index[d] == stretches.steps[d].second) index[d++] = 0;
      more = d < index.size();
    }
    const auto wanted = static_cast<ssize_t>(local.size()) * stretches.num_bytes;
    if (process_vm_readv(pid, local.data(), local.size(), remote.data(), remote.size(), 0) != wanted)
      return ErrnoStatus("read an output of process", absl::StrCat(pid));
  }
  return absl::OkStatus();
}

// Strides of a tensor without gaps, in elements.
std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

// Copies a tensor into dense order.
void Gather(const StridedTensor& tensor, const char* from, char* to) {
  const std::vector<int64_t>& shape = tensor.shape;
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset += index[d] * tensor.strides[d];
    std::memcpy(to + i * tensor.element_bytes, from + offset * tensor.element_bytes,
                static_cast<size_t>(tensor.element_bytes));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

bool IsDense(const StridedTensor& tensor) {
  if (tensor.strides.size() != tensor.shape.size()) return false;
  int64_t stride = 1;
  for (size_t d = tensor.shape.size(); d-- > 0; stride *= tensor.shape[d]) {
    if (tensor.shape[d] > 1 && tensor.strides[d] != stride) return false;
  }
  return true;
}

bool IsWithin(const StridedTensor& tensor, int64_t num_bytes_max) {
  if (tensor.strides.size() != tensor.shape.size()) return false;
  int64_t left = num_bytes_max - tensor.element_bytes;
  for (size_t d = 0; d < tensor.strides.size(); ++d) {
    const int64_t stride = tensor.strides[d], steps = tensor.shape[d] - 1;
    if (stride < 0 || stride > num_bytes_max) return false;
    if (steps <= 0 || stride == 0) continue;
    // No product that may be too large for its type.
    if (steps > left / (stride * tensor.element_bytes)) return false;
    left -= steps * stride * tensor.element_bytes;
  }
  return left >= 0;
}

bool SharesElements(const StridedTensor& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return false;
  int64_t covered = 1;
  for (const auto& [stride, extent] : SortedSteps(tensor)) {
    if (stride < covered) return true;
    covered += (extent - 1) * stride;
  }
  return false;
}

absl::Status ReadStrided(pid_t pid, uint64_t address, const StridedTensor& tensor, char* dense) {
  const Stretches stretches = FindStretches(tensor);
  return ReadStrided(tensor, dense,
                     [&](int64_t, char* to) { return ReadStretches(pid, address, stretches, to); });
}

absl::Status ReadStrided(const StridedTensor& tensor, char* dense,
                         const std::function<absl::Status(int64_t num_bytes, char* to)>& read) {
  int64_t span = tensor.element_bytes;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    span += (tensor.shape[d] - 1) * tensor.strides[d] * tensor.element_bytes;
  }
  if (tensor.strides == DenseStrides(tensor.shape)) return read(span, dense);
  // Not cleared: only what is read costs memory.
  const std::unique_ptr<char[]> strided(new char[static_cast<size_t>(span)]);
  RETURN_IF_ERROR(read(span, strided.get()));
  Gather(tensor, strided.get(), dense);
  return absl::OkStatus();
}

}  // namespace warpsmith
