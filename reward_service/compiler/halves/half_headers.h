// Which half of a CUDA program reads which header.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_HALF_HEADERS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_HALF_HEADERS_H_

#include <optional>
#include <string_view>

namespace warpsmith {

struct HalfHeader {
  bool is_hosts = false;
  bool is_devices = false;
  // What stands for it in the device's half; may be empty.
  std::string_view device_line = {};
};

// None for a header that only nvcc is known to read.
std::optional<HalfHeader> FindHalfHeader(std::string_view name);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_HALF_HEADERS_H_
