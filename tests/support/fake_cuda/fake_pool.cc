// Memory in the order of a stream, which has never anything to do: what the driver keeps of it is a number.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "reward_service/cuda/driver_api.h"
#include "tests/support/fake_cuda/fake_kernels.h"
#include "tests/support/fake_cuda/fake_script.h"

namespace {

using namespace warpsmith::cuda;       // NOLINT: the library is the driver
using namespace warpsmith::fake_cuda;  // NOLINT: it does what the script says
using warpsmith::kInvalid;
using warpsmith::Pointer;

struct Kept {
  std::mutex mutex;
  std::map<Address, size_t> taken;
  size_t used = 0, reserved = 0;
};

Kept& ThePool() {
  static auto* const pool = new Kept;
  return *pool;
}

}  // namespace

extern "C" {

Result cuDeviceGetDefaultMemPool(Pool* pool, Device) {
  RETURN_IF_FAILING();
  *pool = nullptr;
  return 0;
}

Result cuMemPoolSetAttribute(Pool, int, void*) {
  RETURN_IF_FAILING();
  return 0;
}

Result cuMemPoolGetAttribute(Pool, int attribute, void* value) {
  RETURN_IF_FAILING();
  const std::lock_guard<std::mutex> lock(ThePool().mutex);
  *static_cast<uint64_t*>(value) = attribute == kPoolUsedBytes ? ThePool().used : ThePool().reserved;
  return 0;
}

Result cuMemPoolTrimTo(Pool, size_t bytes_kept) {
  RETURN_IF_FAILING();
  Kept& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  pool.reserved = std::min(pool.reserved, std::max(pool.used, bytes_kept));
  return 0;
}

// Fails as the script says where it does not have so much.
Result cuMemAllocAsync(Address* address, size_t num_bytes, Stream) {
  Kept& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  if (pool.used + num_bytes > pool.reserved) {
    RETURN_IF_FAILING();
  }
  void* const start = std::malloc(num_bytes);
  if (start == nullptr) return kOutOfMemory;
  *address = reinterpret_cast<Address>(start);
  pool.taken[*address] = num_bytes;
  pool.used += num_bytes;
  pool.reserved = std::max(pool.reserved, pool.used);
  return 0;
}

Result cuMemFreeAsync(Address address, Stream) {
  Kept& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  const auto found = pool.taken.find(address);
  if (found == pool.taken.end()) return kInvalid;
  pool.used -= found->second;
  pool.taken.erase(found);
  std::free(Pointer(address));
  return 0;
}

}  // extern "C"
