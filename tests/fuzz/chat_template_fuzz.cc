// Any program is a chat template that we recognise and render, or one that is refused: none is run.
#include "core/base/check.h"
#include "core/tokenizer/chat_template.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const auto found = warpsmith::ChatTemplate::Recognise(warpsmith::AsText(bytes, num_bytes));
  if (!found.ok()) {
    WS_CHECK(absl::IsUnimplemented(found.status())) << found.status().message();
    return 0;
  }
  const auto text = found->RenderText({{"user", "<|im_end|>what?", std::nullopt}}, {.today = "26 Jul 2024"});
  WS_CHECK(text.ok()) << text.status().message();
  WS_CHECK(text->find("what?") != std::string::npos);
  return 0;
}
