// Any bytes, as a candidate may send them, come out as text of known words, new names, numbers and signs
// alone.
#include <cctype>

#include "core/base/check.h"
#include "reward_service/program/known_words.h"
#include "reward_service/program/neutral_source.h"
#include "reward_service/program/neutral_text.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

bool IsWordByte(char c) { return c == '_' || c == '\'' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsNeutral(const std::string& word) {
  const bool is_new =
      word.rfind("id_", 0) == 0 && word.find_first_not_of("0123456789", 3) == std::string::npos;
  return is_new || warpsmith::IsKnownWord(word) || warpsmith::IsPlainNumber(word);
}

void CheckNeutral(const std::string& text) {
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    const size_t number = warpsmith::NumberLength(std::string_view(text).substr(begin));
    if (number > 0 && warpsmith::IsPlainNumber(std::string_view(text).substr(begin, number))) {
      end = begin + number - 1;
      continue;
    }
    for (end = begin; end < text.size() && IsWordByte(text[end]);) ++end;
    if (end > begin) WS_CHECK(IsNeutral(text.substr(begin, end - begin))) << text.substr(begin, end - begin);
    WS_CHECK(end == text.size() || text[end] == '\n' || (text[end] >= ' ' && text[end] <= '~'));
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::string_view source = warpsmith::AsText(bytes, num_bytes);
  warpsmith::NeutralNames names({});
  CheckNeutral(warpsmith::NeutralCpp(source, &names));
  CheckNeutral(warpsmith::NeutralPython(source, &names));
  return 0;
}
