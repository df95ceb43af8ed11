// A libcupti.so.13 beside the driver of fake_cuda.cc: it tells the launches that this driver was asked for, each with
// 40 registers a thread and a microsecond for each block.
#include <cupti_activity.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using OnLaunch = void (*)(const char* name, const unsigned* grid, const unsigned* block,
                          unsigned shared_bytes);
using Record = CUpti_ActivityKernel10;  // of fills, too, in which only the kind counts

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;

std::vector<Record>& Records() {
  static auto* const records = new std::vector<Record>;
  return *records;
}

void Note(const char* name, const unsigned* grid, const unsigned* block, unsigned shared_bytes) {
  Record record{};
  record.kind = name != nullptr ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_MEMSET;
  if (name != nullptr) {
    record.name = name;
    record.registersPerThread = 40;
    record.staticSharedMemory = 16;
    record.dynamicSharedMemory = static_cast<int32_t>(shared_bytes);
    int32_t* const extents[] = {&record.gridX,  &record.gridY,  &record.gridZ,
                                &record.blockX, &record.blockY, &record.blockZ};
    for (int i = 0; i < 6; ++i) *extents[i] = static_cast<int32_t>(i < 3 ? grid[i] : block[i - 3]);
    record.start = 1000;
    record.end = record.start + uint64_t{1000} * grid[0] * grid[1] * grid[2];
  }
  Records().push_back(record);
}

void Deliver() {
  std::vector<Record>& records = Records();
  for (size_t first = 0; first < records.size();) {
    uint8_t* buffer = nullptr;
    size_t num_bytes = 0, num_records_max = 0;
    request(&buffer, &num_bytes, &num_records_max);
    const size_t number = std::min(num_bytes / sizeof(Record), records.size() - first);
    if (buffer == nullptr || number == 0) break;  // the rest is dropped
    std::memcpy(buffer, &records[first], number * sizeof(Record));
    complete(nullptr, 0, buffer, num_bytes, number * sizeof(Record));
    first += number;
  }
  records.clear();
}

CUptiResult Listen(OnLaunch listener) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* const place =
      driver == nullptr ? nullptr : static_cast<OnLaunch*>(dlsym(driver, "fake_cuda_on_launch"));
  if (place == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  *place = listener;
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  request = funcBufferRequested;
  complete = funcBufferCompleted;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return Listen(&Note); }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return Listen(nullptr); }

// By a thread of its own, as the real one may.
CUptiResult cuptiActivityFlushAll(uint32_t) {
  std::thread(&Deliver).join();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       CUpti_Activity** record) {
  auto* const next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + sizeof(Record);
  if (next + sizeof(Record) > buffer + validBufferSizeBytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** str) {
  *str = "an error of the fake";
  return CUPTI_SUCCESS;
}

}  // extern "C"
