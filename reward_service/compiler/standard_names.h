// What a source names of the C++ standard library, read from its words.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_STANDARD_NAMES_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_STANDARD_NAMES_H_

#include <string_view>

#include "absl/types/span.h"

namespace warpsmith {

// Whether each name that `source` takes from `std` is among `names`, and each header that it includes is one of CUDA,
// C, Torch or DLPack that compiles without more of the library than those names. False also where the preprocessor
// could make words that the text does not have. Comments and dead code count. A function that is given a list, as in
// `std::max({a, b, c})`, has another name here.
bool NamesOnly(std::string_view source, absl::Span<const std::string_view> names);

// The flag with which libstdc++'s <cmath>, which nvcc puts before every program, lacks the special functions of C++17
// [sf.cmath] and what these include: a third of all that nvcc reads for a short program. By the include guard of the
// header that declares them.
inline constexpr char kNoSpecialFunctions[] = "-D_GLIBCXX_BITS_SPECFUN_H=1";

// Whether a word stands in a source, comments included.
bool HasWord(std::string_view source, std::string_view word);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_STANDARD_NAMES_H_
