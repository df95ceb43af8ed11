// Any bytes are a file whose tensors lie within it, or an error: also where the length of its header lies.
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/unique_fd.h"
#include "core/checkpoint/safetensors_file.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const warpsmith::UniqueFd file(memfd_create("safetensors", MFD_CLOEXEC));
  WS_CHECK(write(file.get(), bytes, num_bytes) == static_cast<ssize_t>(num_bytes));
  const auto opened = warpsmith::SafetensorsFile::Open(absl::StrCat("/proc/self/fd/", file.get()));
  if (!opened.ok()) return 0;
  size_t num_tensor_bytes = 0;
  for (const warpsmith::TensorView& view : opened->tensors()) {
    WS_CHECK(opened->Find(view.info.name) == &view);
    unsigned sum = 0;
    for (const std::byte byte : view.bytes) sum += std::to_integer<unsigned>(byte);  // all can be read
    WS_CHECK(sum <= 255 * view.bytes.size());
    num_tensor_bytes += view.bytes.size();
  }
  WS_CHECK(num_tensor_bytes + 8 <= num_bytes) << num_tensor_bytes;
  return 0;
}
