#include "core/model/training/activation_pool.h"

#include "core/base/check.h"

namespace warpsmith {

void ActivationPool::Release::operator()(void* memory) const {
  if (pool->free_.size() < kFreeMax) {
    pool->free_.push_back({memory, bytes});
  } else {
    std::free(memory);
  }
}

ActivationPool::Block ActivationPool::Take(const std::shared_ptr<ActivationPool>& pool, size_t bytes) {
  std::vector<Free>& free = pool->free_;
  size_t best = free.size();
  for (size_t i = 0; i < free.size(); ++i) {
    const bool fits = free[i].bytes >= bytes && free[i].bytes / 2 <= bytes;
    if (fits && (best == free.size() || free[i].bytes < free[best].bytes)) best = i;
  }
  if (best < free.size()) {
    const Free found = free[best];
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(best));
    return Block(found.memory, {pool, found.bytes});
  }
  const size_t rounded = (bytes + 63) / 64 * 64 + 64;
  void* memory = std::aligned_alloc(64, rounded);
  WS_CHECK(memory != nullptr) << "no memory for activations of " << rounded
                              << " bytes: use smaller micro-batches";
  return Block(memory, {pool, rounded});
}

ActivationPool::~ActivationPool() {
  for (const Free& block : free_) std::free(block.memory);
}

}  // namespace warpsmith
