// The closed list of advice in words. The words stand beside the values, in task.proto.
#ifndef WARPSMITH_PROTO_ADVICE_WORDS_H_
#define WARPSMITH_PROTO_ADVICE_WORDS_H_

#include <string>
#include <string_view>

#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// "fix bounds", "avoid the temporary": as prompts, files and terminals show it. Empty for
// ADVICE_UNSPECIFIED and for a value that is none of the list. Lives as long as the program.
std::string_view AdviceWords(v1::Advice advice);

// The advice whose words are exactly `words`; ADVICE_UNSPECIFIED for any other text.
v1::Advice AdviceOfWords(std::string_view words);

// All words, in the order of the values, with ", " between: for messages.
std::string AllAdviceWords();

}  // namespace warpsmith

#endif  // WARPSMITH_PROTO_ADVICE_WORDS_H_
