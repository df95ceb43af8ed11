// Memory of activations, reused from step to step: fresh pages would cost more than the arithmetic of a small
// model.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_ACTIVATION_POOL_H_
#define WARPSMITH_CORE_MODEL_TRAINING_ACTIVATION_POOL_H_

#include <cstdlib>
#include <memory>
#include <vector>

namespace warpsmith {

// Uninitialised blocks, aligned to 64 bytes. Not thread-safe.
class ActivationPool {
 public:
  struct Release {
    std::shared_ptr<ActivationPool> pool;
    size_t bytes;
    void operator()(void* memory) const;
  };
  // Goes back to the pool when it is destroyed.
  using Block = std::unique_ptr<void, Release>;

  // The smallest free block that is large enough but not twice too large, else a new one.
  static Block Take(const std::shared_ptr<ActivationPool>& pool, size_t bytes);

  ~ActivationPool();

 private:
  struct Free {
    void* memory;
    size_t bytes;
  };
  static constexpr size_t kFreeMax = 256;  // blocks kept

  std::vector<Free> free_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_ACTIVATION_POOL_H_
