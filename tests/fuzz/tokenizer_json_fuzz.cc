// Any text is a tokenizer or an error; no tokenizer.json can crash the process.
#include "core/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  (void)warpsmith::Tokenizer::Parse(std::string(warpsmith::AsText(bytes, num_bytes)));
  return 0;
}
