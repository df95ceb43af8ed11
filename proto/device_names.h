// The devices by the names that files, terminals and configurations use.
#ifndef WARPSMITH_PROTO_DEVICE_NAMES_H_
#define WARPSMITH_PROTO_DEVICE_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// "cpu" of DEVICE_CPU. Empty for DEVICE_UNSPECIFIED and for a value that is none of the list.
std::string DeviceName(v1::Device device);

// The device of exactly this name; DEVICE_UNSPECIFIED for any other text.
v1::Device DeviceOfName(std::string_view name);

// All names, in the order of the values.
std::vector<std::string> DeviceNames();

// "cpu or cuda": for messages.
std::string AllDeviceNames();

}  // namespace warpsmith

#endif  // WARPSMITH_PROTO_DEVICE_NAMES_H_
