// Any text is an index that agrees with the two shards beside it, or an error.
#include <fstream>

#include "core/base/check.h"
#include "core/checkpoint/tensor_directory.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// model-00001-of-00002.safetensors with the tensor "a", model-00002-of-00002.safetensors with "b".
const std::filesystem::path& Shards() {
  static const TemporaryDirectory directory;
  static const bool written =
      WriteTensorDirectory(directory.path(), {{"a", TensorType::kU8, {4}}, {"b", TensorType::kU8, {4}}}, 4,
                           [](const TensorInfo&, const ByteSink& sink) -> absl::Status {
                             const std::byte bytes[4] = {};
                             return sink(bytes);
                           })
          .ok();
  WS_CHECK(written);
  return directory.path();
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::filesystem::path& directory = warpsmith::Shards();
  std::ofstream(directory / "model.safetensors.index.json", std::ios::binary)
      << warpsmith::AsText(bytes, num_bytes);
  const auto opened = warpsmith::TensorDirectory::Open(directory);
  if (!opened.ok()) return 0;
  for (const warpsmith::TensorView* const view : opened->tensors()) {
    WS_CHECK(view->info.name == "a" || view->info.name == "b") << view->info.name;
    WS_CHECK(opened->Find(view->info.name) == view && view->bytes.size() == 4);
  }
  return 0;
}
