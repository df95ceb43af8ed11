#include "reward_service/cuda/clock_reader.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";
constexpr size_t kQueries = 9;  // to know what one takes

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  // POSIX has dlsym() give functions as pointers to objects.
  *reinterpret_cast<void**>(function) = dlsym(library, name);
  return *function != nullptr;
}

// The library stays loaded as long as the process.
absl::StatusOr<NvmlApi> LoadNvml(const std::string& path) {
  void* const library = dlopen(path.empty() ? kLibrary : path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(absl::StrCat("there is no NVML: ", dlerror()));
  NvmlApi api;
  const bool found =
      Find(library, "nvmlInit_v2", &api.nvmlInit_v2) && Find(library, "nvmlShutdown", &api.nvmlShutdown) &&
      Find(library, "nvmlErrorString", &api.nvmlErrorString) &&
      Find(library, "nvmlDeviceGetHandleByUUID", &api.nvmlDeviceGetHandleByUUID) &&
      Find(library, "nvmlDeviceGetClockInfo", &api.nvmlDeviceGetClockInfo) &&
      (Find(library, "nvmlDeviceGetCurrentClocksEventReasons", &api.nvmlDeviceGetCurrentClocksEventReasons) ||
       Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons",
            &api.nvmlDeviceGetCurrentClocksEventReasons));
  if (found) return api;
  return absl::FailedPreconditionError(absl::StrCat("NVML is too old: ", dlerror()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClockReader>> ClockReader::Open(const std::string& uuid,
                                                               const std::string& path) {
  ASSIGN_OR_RETURN(const NvmlApi api, LoadNvml(path));
  auto reader = absl::WrapUnique(new ClockReader(api));
  RETURN_IF_ERROR(reader->Check(api.nvmlInit_v2(), "nvmlInit"));
  const NvmlResult found = api.nvmlDeviceGetHandleByUUID(uuid.c_str(), &reader->device_);
  if (found == kNvmlNotFound) {
    return absl::NotFoundError(
        absl::StrCat("NVML knows no GPU ", uuid, ": an instance of MIG has no clocks of its own"));
  }
  RETURN_IF_ERROR(reader->Check(found, "nvmlDeviceGetHandleByUUID"));
  RETURN_IF_ERROR(reader->MeasureQuery());
  return reader;
}

ClockReader::~ClockReader() { api_.nvmlShutdown(); }

absl::StatusOr<ClockReading> ClockReader::Read() const {
  unsigned sm_mhz = 0, memory_mhz = 0;
  unsigned long long reasons = 0;
  RETURN_IF_ERROR(Check(api_.nvmlDeviceGetClockInfo(device_, kSmClock, &sm_mhz), "nvmlDeviceGetClockInfo"));
  RETURN_IF_ERROR(
      Check(api_.nvmlDeviceGetClockInfo(device_, kMemoryClock, &memory_mhz), "nvmlDeviceGetClockInfo"));
  RETURN_IF_ERROR(Check(api_.nvmlDeviceGetCurrentClocksEventReasons(device_, &reasons),
                        "nvmlDeviceGetCurrentClocksEventReasons"));
  return ClockReading{static_cast<int>(sm_mhz), static_cast<int>(memory_mhz), reasons};
}

absl::Status ClockReader::Check(NvmlResult result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char* const name = api_.nvmlErrorString(result);
  return absl::InternalError(
      absl::StrCat(what, ": ", name == nullptr ? "an unknown error" : name, " (", result, ")"));
}

absl::Status ClockReader::MeasureQuery() {
  std::array<double, kQueries> us{};
  for (double& one : us) {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(Read().status());
    one = absl::ToDoubleMicroseconds(absl::Now() - begin);
  }
  std::sort(us.begin(), us.end());
  query_us_ = us[kQueries / 2];
  return absl::OkStatus();
}

}  // namespace warpsmith::cuda
