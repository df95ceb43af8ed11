// What a jail says that load_inline was called with is records or INVALID_ARGUMENT; the file and the flags
// made of a record are ours to compile or refused.
#include <string>

#include "core/base/check.h"
#include "reward_service/compiler/compile_options.h"
#include "reward_service/compiler/cuda_options.h"
#include "reward_service/compiler/extension_source.h"
#include "reward_service/measure/request_json.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const auto text = warpsmith::AsText(bytes, num_bytes);
  const auto records =
      warpsmith::ExtensionsFromJson(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false), true);
  if (!records.ok()) {
    WS_CHECK(absl::IsInvalidArgument(records.status())) << records.status();
    return 0;
  }
  for (const warpsmith::ExtensionRecord& record : *records) {
    const auto source = warpsmith::SourcesOf({record.name, record.cpp_sources, record.cuda_sources,
                                              record.functions, record.extra_cflags, record.extra_ldflags,
                                              record.extra_cuda_cflags, record.with_cuda});
    WS_CHECK(source.ok() || absl::IsInvalidArgument(source.status())) << source.status();
    for (const auto& flags : {warpsmith::AllowedOptions(record.extra_cflags),
                              warpsmith::AllowedCudaOptions(record.extra_cuda_cflags)}) {
      if (!flags.ok()) continue;
      for (const std::string& flag : *flags) WS_CHECK(flag.size() > 1 && flag[0] == '-') << flag;
    }
  }
  return 0;
}
