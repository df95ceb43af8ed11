// Whether a program is another one under new names.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_RENAMED_COPY_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_RENAMED_COPY_H_

#include <string_view>

namespace warpsmith {

// Whether two C++ programs are one but for comments, layout, included headers, literals of text and the names
// that they declare themselves. A name counts as declared where a word or a sign of a type stands right
// before it (`float x`, `const T* x`, `vector<T> x`) and it is no member of anything; library functions keep
// their names.
bool IsRenamedCopy(std::string_view left, std::string_view right);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_RENAMED_COPY_H_
