// Any JSON is a header whose tensors cover the data without gap, or an error.
#include "core/base/check.h"
#include "core/checkpoint/safetensors_header.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  constexpr int64_t kDataBytes = 64;
  const auto header = warpsmith::ParseSafetensorsHeader(warpsmith::AsText(bytes, num_bytes), kDataBytes);
  if (!header.ok()) return 0;
  int64_t end_of_last = 0;
  for (const warpsmith::SafetensorsHeader::Entry& entry : header->entries) {
    WS_CHECK(entry.begin == end_of_last && entry.end >= entry.begin);
    end_of_last = entry.end;
  }
  WS_CHECK(end_of_last == kDataBytes) << end_of_last;
  return 0;
}
