#include "reward_service/cuda/host_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/huge_pages.h"

namespace warpsmith::cuda {

absl::StatusOr<HostPages> HostPages::Map(int64_t num_bytes) {
  HostPages pages;
  pages.num_bytes_ = std::max<int64_t>(num_bytes, 1);
  const auto size = static_cast<size_t>(pages.num_bytes_);
  pages.data_ = ReserveAligned(pages.num_bytes_);
  if (pages.data_ == nullptr || mprotect(pages.data_, size, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the host has no ", num_bytes, " bytes of memory: ", std::strerror(errno)));
  }
  (void)madvise(pages.data_, size, MADV_HUGEPAGE);  // a kernel without them has small ones
  if (madvise(pages.data_, size, MADV_DONTFORK) != 0) return absl::ErrnoToStatus(errno, "madvise");
  PopulateHuge(pages.data_, pages.num_bytes_);
  return pages;
}

HostPages::~HostPages() {
  if (data_ != nullptr) ReleaseAligned(data_, num_bytes_);
}

HostPages& HostPages::operator=(HostPages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

}  // namespace warpsmith::cuda
