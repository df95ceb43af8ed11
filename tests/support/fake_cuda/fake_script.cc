#include "tests/support/fake_cuda/fake_script.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace warpsmith::fake_cuda {
namespace {

constexpr cuda::Result kUnavailable = 46;  // CUDA_ERROR_DEVICE_UNAVAILABLE

}  // namespace

Script ReadScript() {
  Script script;
  const char* const path = std::getenv("FAKE_CUDA");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, name;
    words >> key;
    if (key == "gpus") words >> script.num_gpus;
    if (key == "throttle") {
      words >> script.first_throttled >> script.num_throttled;
      script.throttle_line = line;
    }
    if (key == "version") words >> script.version;
    if (size_t mib = 0; key == "memory" && words >> mib) script.memory_bytes = mib << 20;
    if (key == "free") words >> script.free_percent;
    if (key == "rest") words >> script.rest_after_ms >> script.rest_ms;
    if (key == "busy") words >> script.num_busy;
    if (int number = 0; key == "gone" && words >> number) script.gone.insert(number);
    if (key == "fail" && words >> name) words >> script.failing[name];
    if (key == "late" && words >> name) words >> script.late_ms[name];
  }
  return script;
}

int NamedGpu() {
  constexpr size_t kNameBytes = sizeof("GPU-abababab-abab-abab-abab-abababababab") - 1;
  const char* const name = std::getenv("CUDA_VISIBLE_DEVICES");
  if (name == nullptr || std::strlen(name) != kNameBytes) return -1;
  return static_cast<int>(std::strtol(name + kNameBytes - 2, nullptr, 16));
}

cuda::Result Turn(const char* name) {
  Script script = ReadScript();
  std::this_thread::sleep_for(std::chrono::milliseconds(script.late_ms[name]));
  return script.gone.count(NamedGpu()) > 0 ? kUnavailable : script.failing[name];
}

}  // namespace warpsmith::fake_cuda
