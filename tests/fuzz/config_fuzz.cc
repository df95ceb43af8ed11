// Any text is a configuration or an error with its place; what is accepted loads again from its resolved
// form.
#include "core/base/check.h"
#include "core/config/config_file.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const auto file =
      warpsmith::ConfigFile::Parse(warpsmith::AsText(bytes, num_bytes), "fuzz.yaml", {"run", "model"});
  if (!file.ok()) {
    WS_CHECK(!file.status().message().empty());
    return 0;
  }
  int64_t seed = 0;
  (*file)->Section("run").Read("seed", &seed);
  const std::string resolved = (*file)->ResolvedYaml();
  const auto again = warpsmith::ConfigFile::Parse(resolved, "resolved.yaml", {"run", "model"});
  WS_CHECK(again.ok()) << again.status() << "\n" << resolved;
  return 0;
}
