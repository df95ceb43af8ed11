// Words that belong to languages and libraries, and so to nobody who writes a program.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_KNOWN_WORDS_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_KNOWN_WORDS_H_

#include <string_view>

namespace warpsmith {

// Whether `word` is a keyword of C++, CUDA or Python, a name of their libraries that kernels use, or an x86
// intrinsic made of known parts. The list is closed and none of its words asks for anything: text of them
// alone can show what a program does, and can hardly say anything else.
bool IsKnownWord(std::string_view word);

// Whether `text` is a number as C++ or Python write it, short enough to be nothing but a number.
bool IsPlainNumber(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_KNOWN_WORDS_H_
