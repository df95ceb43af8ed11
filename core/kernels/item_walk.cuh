// Which query an item of work belongs to, where each query has a number of items that only the device knows.
#ifndef WARPSMITH_CORE_KERNELS_ITEM_WALK_CUH_
#define WARPSMITH_CORE_KERNELS_ITEM_WALK_CUH_

#include <cstdint>

#include "core/kernels/reductions.cuh"

namespace warpsmith {

struct WalkedItem {
  int query = -1;  // -1: there are no such items
  int index = 0;   // among those of the query
};

// Items lie query after query. A warp asks for them in ascending order, and counts those of 32 queries at a time.
// `items_of(query)` is at least 0; all items together are fewer than 2^31.
template <typename ItemsOf>
class ItemWalk {
 public:
  __device__ ItemWalk(int64_t num_queries, ItemsOf items_of)
      : num_queries_(static_cast<int>(num_queries)), items_of_(items_of) {
    Count();
  }

  // By the whole warp.
  __device__ WalkedItem Find(int64_t item) {
    while (item >= __shfl_sync(kWholeWarp, end_, kWarp - 1)) {
      if (first_query_ + kWarp >= num_queries_) return {};
      before_ = __shfl_sync(kWholeWarp, end_, kWarp - 1);
      first_query_ += kWarp;
      Count();
    }
    const int of_warp = __ffs(static_cast<int>(__ballot_sync(kWholeWarp, end_ > item))) - 1;
    const int end_of_former = __shfl_sync(kWholeWarp, end_, of_warp == 0 ? 0 : of_warp - 1);
    return {first_query_ + of_warp, static_cast<int>(item) - (of_warp == 0 ? before_ : end_of_former)};
  }

 private:
  // end_: the items of all queries up to this lane's.
  __device__ void Count() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    end_ = first_query_ + lane < num_queries_ ? items_of_(first_query_ + lane) : 0;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int before = __shfl_up_sync(kWholeWarp, end_, offset);
      if (lane >= offset) end_ += before;
    }
    end_ += before_;
  }

  int num_queries_;
  ItemsOf items_of_;
  int first_query_ = 0;
  int before_ = 0;  // items of the queries before first_query_
  int end_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ITEM_WALK_CUH_
