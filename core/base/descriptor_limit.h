// How many files this process may have open.
#ifndef WARPSMITH_CORE_BASE_DESCRIPTOR_LIMIT_H_
#define WARPSMITH_CORE_BASE_DESCRIPTOR_LIMIT_H_

namespace warpsmith {

// Raises the limit on open files as far as this process may, and returns it; at most 2^30.
int RaiseDescriptorLimit();

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_DESCRIPTOR_LIMIT_H_
