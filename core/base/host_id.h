// Tells processes of one host from those of another.
#ifndef WARPSMITH_CORE_BASE_HOST_ID_H_
#define WARPSMITH_CORE_BASE_HOST_ID_H_

#include <string>

namespace warpsmith {

// Returns the id that Linux drew when this host started (proc(5), random/boot_id): equal in all its processes,
// containers among them. Empty where the system does not tell.
std::string HostId();

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_HOST_ID_H_
