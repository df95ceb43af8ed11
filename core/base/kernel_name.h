// Names of GPU kernels, for people.
#ifndef WARPSMITH_CORE_BASE_KERNEL_NAME_H_
#define WARPSMITH_CORE_BASE_KERNEL_NAME_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace warpsmith {

inline constexpr size_t kKernelNameBytesMax = 128;

// The name of a kernel for people: demangled, without return type and parameters, anonymous namespaces
// without the hash of their file. Cut to kKernelNameBytesMax, not escaped. A name that could take long to
// demangle is its identifiers alone.
std::string KernelName(std::string_view symbol);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_KERNEL_NAME_H_
