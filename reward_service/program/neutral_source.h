// Whole programs without anything that their writers say: no comment, no literal, no name of their own.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_NEUTRAL_SOURCE_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_NEUTRAL_SOURCE_H_

#include <string>
#include <string_view>

#include "reward_service/program/neutral_text.h"

namespace warpsmith {

// C++ or CUDA, laid out anew. What `#if 0` disables is left out.
std::string NeutralCpp(std::string_view source, NeutralNames* names);

// Python, laid out anew, documentation strings left out. A string literal that looks like C++ is shown as C++
// would be, every other as `"..."`.
std::string NeutralPython(std::string_view source, NeutralNames* names);

// The words that a Python program names outside literals and comments, in ASCII.
NeutralNames::WordSet PythonWords(std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_NEUTRAL_SOURCE_H_
