#include "proto/device_names.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a device's name is that of its value, in small letters") {
  CHECK(DeviceName(v1::DEVICE_CUDA) == "cuda");
  CHECK(DeviceNames() == std::vector<std::string>{"cpu", "cuda"});
  CHECK(AllDeviceNames() == "cpu or cuda");
  CHECK(DeviceName(v1::DEVICE_UNSPECIFIED).empty());
}

TEST_CASE("a name gives its device, and any other text none") {
  for (const std::string& name : DeviceNames()) CHECK(DeviceName(DeviceOfName(name)) == name);
  for (const char* text : {"", "CUDA", "unspecified", "gpu"}) {
    INFO(text);
    CHECK(DeviceOfName(text) == v1::DEVICE_UNSPECIFIED);
  }
}

}  // namespace warpsmith
