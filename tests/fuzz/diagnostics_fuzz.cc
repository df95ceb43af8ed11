// What compilers write of a program, of which the program has written most, is trimmed to bounded text that a
// terminal can show, and judged.
#include <string>

#include "core/base/check.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/compiler/refusal.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::string trimmed = warpsmith::TrimDiagnostics(warpsmith::AsText(bytes, num_bytes));
  WS_CHECK(trimmed.size() <= warpsmith::kDiagnosticsBytesMax) << trimmed.size();
  for (const char c : trimmed) WS_CHECK(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << trimmed;
  const std::string first = warpsmith::FirstError(trimmed);
  WS_CHECK(first.empty() || first.rfind("error: ", 0) == 0) << first;
  WS_CHECK(first.size() <= 160) << first;
  warpsmith::MayNeedOtherHeaders(trimmed, nullptr);
  warpsmith::LacksAName(trimmed, {});
  return 0;
}
