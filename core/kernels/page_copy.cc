#include "core/kernels/page_copy.h"

#include <algorithm>

namespace warpsmith {

void PageCopyReference(const PageCopies<float>& copies) {
  for (int64_t plane = 0; plane < copies.num_planes; ++plane) {
    for (int64_t i = 0; i < copies.num_copies; ++i) {
      const PageToCopy& copy = copies.copies[i];
      std::copy_n(copies.pages + PageOffset(copies, plane, copy.source), copy.num_tokens * copies.entry_size,
                  copies.pages + PageOffset(copies, plane, copy.destination));
    }
  }
}

}  // namespace warpsmith
