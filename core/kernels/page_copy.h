// Copies of pages of a KV cache, in every layer at once: contract, and the reference on a CPU.
//
//   pages[p, destination, t, :] = pages[p, source, t, :]  for every plane p and t < num_tokens of each copy
#ifndef WARPSMITH_CORE_KERNELS_PAGE_COPY_H_
#define WARPSMITH_CORE_KERNELS_PAGE_COPY_H_

#include <cstdint>

namespace warpsmith {

// Three int32 one after another, as a step's plan has them.
struct PageToCopy {
  int32_t source = 0;
  int32_t destination = 0;
  int32_t num_tokens = 0;  // 0: nothing is copied
};

// A plane is the keys or the values of one layer. T is what is stored.
template <typename T>
struct PageCopies {
  int64_t num_copies = 0;
  const PageToCopy* copies = nullptr;  // no destination occurs twice or is a source
  int64_t num_planes = 0;
  int64_t plane_stride = 0;  // elements
  int64_t page_tokens = 0;
  int64_t entry_size = 0;  // elements of a token: heads of keys times head_dim
  T* pages = nullptr;      // [num_planes][num_pages, page_tokens, entry_size]
};

// First element of a page in a plane.
template <typename T>
constexpr int64_t PageOffset(const PageCopies<T>& copies, int64_t plane, int64_t page) {
  return plane * copies.plane_stride + page * copies.page_tokens * copies.entry_size;
}

void PageCopyReference(const PageCopies<float>& copies);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_PAGE_COPY_H_
