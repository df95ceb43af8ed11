#include "proto/device_names.h"

#include "proto/enum_names.h"

namespace warpsmith {

std::string DeviceName(v1::Device device) { return EnumName(*v1::Device_descriptor(), device); }

v1::Device DeviceOfName(std::string_view name) {
  return static_cast<v1::Device>(EnumOfName(*v1::Device_descriptor(), name));
}

std::vector<std::string> DeviceNames() { return EnumNames(*v1::Device_descriptor()); }

std::string AllDeviceNames() { return AllEnumNames(*v1::Device_descriptor()); }

}  // namespace warpsmith
