// A libnvidia-ml.so.1 for the GPUs of fake_cuda.cc, with the same script: fake_script.h.
#include <cstdlib>
#include <cstring>
#include <string>

#include "reward_service/cuda/clock_reading.h"
#include "reward_service/cuda/nvml_api.h"
#include "tests/support/fake_cuda/fake_script.h"

namespace {

using namespace warpsmith::cuda;       // NOLINT: the library is NVML
using namespace warpsmith::fake_cuda;  // NOLINT: it does what the script says

constexpr unsigned kSmMhz = 990;
constexpr unsigned kMemoryMhz = 2600;

// Since the script has the line that it has now. The clock of the multiprocessors is read first.
struct Readings {
  std::string throttle_line;
  int num = 0;
};

Readings& CountedReadings() {
  static auto* const readings = new Readings;
  return *readings;
}

bool IsThrottled(const Script& script) {
  const int number = CountedReadings().num - 1;
  return number >= script.first_throttled && number < script.first_throttled + script.num_throttled;
}

void CountReading(const Script& script) {
  Readings& readings = CountedReadings();
  if (readings.throttle_line != script.throttle_line) readings = {script.throttle_line, 0};
  ++readings.num;
}

NvmlResult ResultOf(const Script& script, const char* name) {
  const auto found = script.failing.find(name);
  return found == script.failing.end() ? 0 : found->second;
}

}  // namespace

extern "C" {

NvmlResult nvmlInit_v2() { return ResultOf(ReadScript(), __func__); }
NvmlResult nvmlShutdown() { return 0; }

const char* nvmlErrorString(NvmlResult result) {
  return result == kNvmlNotSupported ? "Not Supported" : "an error of the script";
}

// Its number is the last byte of its UUID.
NvmlResult nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  constexpr char kUuids[] = "GPU-abababab-abab-abab-abab-ababababab";
  constexpr size_t kUuidsLength = sizeof(kUuids) - 1;
  const Script script = ReadScript();
  if (std::strncmp(uuid, kUuids, kUuidsLength) != 0) return kNvmlNotFound;
  const int number = static_cast<int>(std::strtol(uuid + kUuidsLength, nullptr, 16));
  if (number >= script.num_gpus || script.gone.count(number) > 0) return kNvmlNotFound;
  *device = nullptr;
  return 0;
}

NvmlResult nvmlDeviceGetClockInfo(NvmlDevice, int type, unsigned* mhz) {
  const Script script = ReadScript();
  if (type == kSmClock) CountReading(script);
  *mhz = type == kMemoryClock ? kMemoryMhz : IsThrottled(script) ? kSmMhz * 2 / 3 : kSmMhz;
  return ResultOf(script, __func__);
}

NvmlResult nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice, unsigned long long* reasons) {
  const Script script = ReadScript();
  *reasons = IsThrottled(script) ? kReasonPowerCap : 0;
  return ResultOf(script, __func__);
}

}  // extern "C"
