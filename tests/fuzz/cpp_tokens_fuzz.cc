// Any bytes, as a candidate may send them, give tokens that lie in the source and in its order.
#include "core/base/check.h"
#include "reward_service/program/cpp_tokens.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::string_view source = warpsmith::AsText(bytes, num_bytes);
  const char* end_of_last = source.data();
  for (const std::string_view token : warpsmith::CppTokens(source)) {
    WS_CHECK(!token.empty());
    WS_CHECK(token.data() >= end_of_last && token.data() + token.size() <= source.data() + source.size());
    end_of_last = token.data() + token.size();
  }
  return 0;
}
