// A program's text without what means nothing to its compiler, so that equal programs can be recognised.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_TEXT_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_TEXT_H_

#include <string>
#include <string_view>

namespace warpsmith {

// C++ or CUDA: comments and white space go wherever the tokens stay the same without them, and are one space
// elsewhere; line ends survive only around preprocessor lines, where they mean something. Literals, raw ones
// included, are untouched. Linear in the text; text that does not lex (an open literal or comment) is kept to
// its end.
std::string NormaliseCpp(std::string_view source);

// Python: comments, trailing white space and empty lines go; indentation and string literals stay, also doc
// strings.
std::string NormalisePython(std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_TEXT_H_
