// What is read of a peer's error details reads the same after writing it.
#include "core/base/check.h"
#include "core/rpc/error_details.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::string_view text = warpsmith::AsText(bytes, num_bytes);
  if (const auto details = warpsmith::DecodeErrorDetails(text); details.has_value()) {
    const auto again = warpsmith::DecodeErrorDetails(warpsmith::EncodeErrorDetails(*details));
    WS_CHECK(again.has_value());
    WS_CHECK(again->code == details->code && again->message == details->message);
    WS_CHECK(again->details.size() == details->details.size());
  }
  warpsmith::DecodeRetryInfo(text);
  return 0;
}
