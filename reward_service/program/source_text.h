// A program's text without what means nothing to its compiler, so that equal programs can be recognised.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_TEXT_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_TEXT_H_

#include <string>
#include <string_view>

namespace warpsmith {

// C++ or CUDA: two texts of equal normal form are equal to the compiler, token by token. Comments and white space
// go wherever the tokens stay the same without them, and are one space elsewhere; joined lines are one; line ends
// survive only around preprocessor lines, where they mean something. Literals, raw ones included, are untouched.
// A text that may hang on its layout is its own normal form: one that asks for its line, that has a macro with #
// or ##, an open comment or literal, or blanks behind the backslash at a line's end, which compilers do not take
// alike. Linear in the text.
std::string NormaliseCpp(std::string_view source);

// Python: comments, trailing white space and empty lines go; indentation and string literals stay, also doc
// strings.
std::string NormalisePython(std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_TEXT_H_
