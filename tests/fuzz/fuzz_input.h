// The entry point that libFuzzer calls.
#ifndef WARPSMITH_TESTS_FUZZ_FUZZ_INPUT_H_
#define WARPSMITH_TESTS_FUZZ_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes);

namespace warpsmith {

inline std::string_view AsText(const uint8_t* bytes, size_t num_bytes) {
  return {reinterpret_cast<const char*>(bytes), num_bytes};
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_FUZZ_FUZZ_INPUT_H_
