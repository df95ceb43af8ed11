// What a C++ program's own text says of its structure, dead parts left out.
#ifndef WARPSMITH_REWARD_SERVICE_RUBRIC_SOURCE_FACTS_H_
#define WARPSMITH_REWARD_SERVICE_RUBRIC_SOURCE_FACTS_H_

#include <string_view>

namespace warpsmith {

// Counted over the functions that `run` reaches by name. Branches of `if (0)` and `if (false)`, text under
// `#if 0` and comments do not count.
struct SourceFacts {
  // False when the text has no `run`, or nests deeper than the scanner follows; all else is 0 then.
  bool valid = false;
  // Loops that stand in no other loop of their function, and the deepest nesting.
  int num_loop_nests = 0;
  int loop_depth_max = 0;
  // malloc, new, std::vector and their like.
  int num_allocations = 0;
};

// Never fails: what cannot be read is not counted. Facts steer advice and the rubric's second digit, never a
// verdict.
SourceFacts ReadSourceFacts(std::string_view cpp_source);

// Whether two C++ programs are one but for comments, layout, included headers, literals of text and the names
// that they declare themselves. A name counts as declared where a word or a sign of a type stands right
// before it (`float x`, `const T* x`, `vector<T> x`) and it is no member of anything; library functions keep
// their names.
bool IsRenamedCopy(std::string_view left, std::string_view right);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_RUBRIC_SOURCE_FACTS_H_
