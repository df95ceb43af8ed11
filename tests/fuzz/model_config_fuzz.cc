// Any text is the configuration of a model that is written and read back unchanged, or an error.
#include "core/base/check.h"
#include "core/model/model_config.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const auto config = warpsmith::ParseModelConfig(warpsmith::AsText(bytes, num_bytes));
  if (!config.ok()) return 0;
  WS_CHECK(warpsmith::CountParameters(*config) > 0);
  const auto again = warpsmith::ParseModelConfig(warpsmith::WriteModelConfig(*config));
  WS_CHECK(again.ok()) << again.status().message();
  WS_CHECK(*again == *config);
  return 0;
}
