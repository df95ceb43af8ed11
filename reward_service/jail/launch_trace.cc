#include "reward_service/jail/launch_trace.h"

#ifdef WARPSMITH_HAS_CUPTI

#include <cupti_activity.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// The latest record of a kernel that this version of CUPTI's header knows; libraries of later versions append fields.
using KernelRecord = CUpti_ActivityKernel10;

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};
constexpr size_t kBufferBytes = 1 << 20;
// Given to CUPTI in one trace. It drops what has no room.
constexpr int kBuffersMax = 64;

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
};

struct Trace {
  std::mutex mutex;  // CUPTI calls from a thread of its own, too
  Launches launches;
  int num_buffers = 0;
};

// CUPTI's callbacks have no argument of ours: what they use must be static.
Cupti cupti;
bool is_loaded = false;

Trace& TheTrace() {
  static auto* const trace = new Trace;  // CUPTI's thread may outlive main()
  return *trace;
}

absl::Status Check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (cupti.result_string(result, &name) != CUPTI_SUCCESS || name == nullptr) name = "an unknown error";
  return absl::InternalError(absl::StrCat(what, ": ", name, " (", static_cast<int>(result), ")"));
}

void Note(const CUpti_Activity& record, Launches* launches) {
  if (record.kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record.kind != CUPTI_ACTIVITY_KIND_KERNEL)
    return launches->AddOther();
  const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
  launches->AddKernel({.symbol = kernel.name == nullptr ? "" : kernel.name,
                       .grid = {kernel.gridX, kernel.gridY, kernel.gridZ},
                       .block = {kernel.blockX, kernel.blockY, kernel.blockZ},
                       .registers = kernel.registersPerThread,
                       .shared_bytes = int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory},
                      static_cast<int64_t>(kernel.end - kernel.start));
}

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* num_bytes, size_t* num_records_max) {
  Trace& trace = TheTrace();
  const std::lock_guard lock(trace.mutex);
  const bool gives = trace.num_buffers < kBuffersMax;
  trace.num_buffers += gives ? 1 : 0;
  *buffer = gives ? static_cast<uint8_t*>(std::malloc(kBufferBytes)) : nullptr;
  *num_bytes = *buffer != nullptr ? kBufferBytes : 0;
  *num_records_max = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*num_bytes*/,
                         size_t num_valid_bytes) {
  Trace& trace = TheTrace();
  const std::lock_guard lock(trace.mutex);
  CUpti_Activity* record = nullptr;
  while (buffer != nullptr && cupti.next_record(buffer, num_valid_bytes, &record) == CUPTI_SUCCESS)
    Note(*record, &trace.launches);
  std::free(buffer);
}

}  // namespace

absl::Status LoadCupti(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  const std::pair<const char*, void**> functions[] = {
      {"cuptiActivityRegisterCallbacks", reinterpret_cast<void**>(&cupti.register_callbacks)},
      {"cuptiActivityEnable", reinterpret_cast<void**>(&cupti.enable)},
      {"cuptiActivityDisable", reinterpret_cast<void**>(&cupti.disable)},
      {"cuptiActivityFlushAll", reinterpret_cast<void**>(&cupti.flush)},
      {"cuptiActivityGetNextRecord", reinterpret_cast<void**>(&cupti.next_record)},
      {"cuptiGetResultString", reinterpret_cast<void**>(&cupti.result_string)}};
  for (const auto& [name, function] : functions) {
    *function = dlsym(library, name);
    if (*function == nullptr) return absl::NotFoundError(absl::StrCat(path, " has no function ", name));
  }
  is_loaded = true;
  return absl::OkStatus();
}

absl::Status BeginTrace() {
  if (!is_loaded) return absl::FailedPreconditionError("CUPTI is not loaded");
  {
    Trace& trace = TheTrace();
    const std::lock_guard lock(trace.mutex);
    trace.launches = {};
    trace.num_buffers = 0;
  }
  RETURN_IF_ERROR(
      Check(cupti.register_callbacks(&GiveBuffer, &TakeBuffer), "cuptiActivityRegisterCallbacks"));
  for (const CUpti_ActivityKind kind : kKinds)
    RETURN_IF_ERROR(Check(cupti.enable(kind), "cuptiActivityEnable"));
  return absl::OkStatus();
}

absl::StatusOr<Launches> EndTrace() {
  if (!is_loaded) return absl::FailedPreconditionError("CUPTI is not loaded");
  const CUptiResult flushed = cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (const CUpti_ActivityKind kind : kKinds) (void)cupti.disable(kind);
  RETURN_IF_ERROR(Check(flushed, "cuptiActivityFlushAll"));
  Trace& trace = TheTrace();
  const std::lock_guard lock(trace.mutex);
  return std::move(trace.launches);
}

}  // namespace warpsmith

#else  // without CUPTI's header

namespace warpsmith {

absl::Status LoadCupti(const char* /*path*/) { return absl::UnimplementedError("built without CUPTI"); }
absl::Status BeginTrace() { return absl::UnimplementedError("built without CUPTI"); }
absl::StatusOr<Launches> EndTrace() { return absl::UnimplementedError("built without CUPTI"); }

}  // namespace warpsmith

#endif
