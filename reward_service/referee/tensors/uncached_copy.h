// Writes that leave no trace in the caches.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_UNCACHED_COPY_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_UNCACHED_COPY_H_

#include <cstddef>

namespace warpsmith {

// As std::memcpy and std::memset, by non-temporal stores where the processor has them: afterwards the
// destination is in memory alone. A candidate whose buffers the referee had just written would find them in
// the last-level cache, where an eager reference, which allocates its own outputs, finds nothing.
void CopyUncached(char* to, const char* from, size_t num_bytes);
void FillUncached(char* to, unsigned char value, size_t num_bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_UNCACHED_COPY_H_
