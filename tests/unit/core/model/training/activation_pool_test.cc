#include "core/model/training/activation_pool.h"

#include <cstdint>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a block that came back is used again where it fits") {
  const auto pool = std::make_shared<ActivationPool>();
  void* first = ActivationPool::Take(pool, 1000).get();
  const ActivationPool::Block again = ActivationPool::Take(pool, 900);
  CHECK(again.get() == first);
  CHECK(reinterpret_cast<uintptr_t>(again.get()) % 64 == 0);
  CHECK(ActivationPool::Take(pool, 900).get() != first);
}

TEST_CASE("a block much too large is kept for who needs it") {
  const auto pool = std::make_shared<ActivationPool>();
  void* large = ActivationPool::Take(pool, 100000).get();
  const ActivationPool::Block small = ActivationPool::Take(pool, 100);
  CHECK(small.get() != large);
  CHECK(ActivationPool::Take(pool, 99000).get() == large);
}

TEST_CASE("a block may outlive everybody else who knows the pool") {
  auto pool = std::make_shared<ActivationPool>();
  ActivationPool::Block block = ActivationPool::Take(pool, 64);
  pool.reset();
  block.reset();
  CHECK(block == nullptr);
}

}  // namespace
}  // namespace warpsmith
