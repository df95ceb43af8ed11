// Whatever an oracle says of a task's tensors, the layout lies within its buffers: nothing overlaps, and each
// output has a guard before and behind it.
#include "core/base/check.h"
#include "reward_service/referee/tensors/tensor_layout.h"
#include "tests/fuzz/fuzz_input.h"

namespace warpsmith {
namespace {

constexpr int64_t kBufferBytesMax = int64_t{1} << 31;  // as large as a referee takes

// Returns where the last one ends.
int64_t CheckSpecs(const std::vector<TensorSpec>& specs, int64_t begin, int64_t gap) {
  for (const TensorSpec& spec : specs) {
    WS_CHECK(spec.offset >= begin + gap && spec.num_bytes >= 0) << spec.offset << " after " << begin;
    WS_CHECK(spec.num_bytes == spec.num_elements * (spec.bits / 8)) << spec.num_bytes;
    if (spec.num_elements > 0) WS_CHECK(!IndexName(spec.shape, spec.num_elements - 1).empty());
    begin = spec.offset + spec.num_bytes;
  }
  return begin;
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const auto described = nlohmann::json::parse(warpsmith::AsText(bytes, num_bytes), nullptr, false);
  if (!described.is_object()) return 0;  // no packet
  const auto layout = warpsmith::MakeLayout(described, warpsmith::kBufferBytesMax);
  if (!layout.ok()) {
    WS_CHECK(absl::IsInvalidArgument(layout.status())) << layout.status();
    return 0;
  }
  const int64_t end_of_inputs = warpsmith::CheckSpecs(layout->inputs, 0, 0);
  WS_CHECK(warpsmith::CheckSpecs(layout->parameters, end_of_inputs, 0) < layout->input_buffer_bytes);
  WS_CHECK(warpsmith::CheckSpecs(layout->outputs, 0, 64) < layout->output_buffer_bytes);
  WS_CHECK(layout->input_buffer_bytes <= warpsmith::kBufferBytesMax);
  WS_CHECK(layout->output_buffer_bytes <= warpsmith::kBufferBytesMax);
  nlohmann::json again;
  again["inputs"] = warpsmith::ToJson(layout->inputs);
  again["parameters"] = warpsmith::ToJson(layout->parameters);
  again["outputs"] = warpsmith::ToJson(layout->outputs);
  const auto layout_again = warpsmith::MakeLayout(again, warpsmith::kBufferBytesMax);
  WS_CHECK(layout_again.ok() && layout_again->tensor_bytes() == layout->tensor_bytes());
  return 0;
}
