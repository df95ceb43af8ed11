// Whatever a Coder answers, the program is a part of the answer, without a closing fence and not blank.
#include "core/base/check.h"
#include "reward_service/program/extraction.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::string_view answer = warpsmith::AsText(bytes, num_bytes);
  const std::optional<std::string_view> program = warpsmith::ExtractProgram(answer);
  if (!program.has_value()) return 0;
  WS_CHECK(program->data() >= answer.data());
  WS_CHECK(program->data() + program->size() <= answer.data() + answer.size());
  WS_CHECK(program->find_first_not_of(" \t\n\r\v\f") != std::string_view::npos);
  return 0;
}
