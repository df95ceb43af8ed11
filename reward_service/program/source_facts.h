// What a C++ program's own text says of its structure, dead parts left out.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_FACTS_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_FACTS_H_

#include <string_view>

namespace warpsmith {

// Counted over the functions that `run` reaches by name. Branches of `if (0)` and `if (false)`, text under
// `#if 0` and comments do not count.
struct SourceFacts {
  // False when the text has no `run`, or nests deeper than the scanner follows; all else is 0 then.
  bool valid = false;
  // The deepest nesting, counting loops of functions that are called in a loop, and how many nests are so deep:
  // a loop over rows alone is no pass beside one over rows and columns.
  int num_passes = 0;
  int loop_depth_max = 0;
  // malloc, new, std::vector and their like.
  int num_allocations = 0;
  // Some innermost loop multiplies its variable into an index, as in x[r * cols + c] over r: neighbours in
  // its order are not neighbours in memory.
  bool strided = false;
  // Names a transcendental function of libm: expf, tanh, ...
  bool calls_libm = false;
};

// Never fails: what cannot be read is not counted. Facts steer advice and the rubric's second digit, never a
// verdict.
SourceFacts ReadSourceFacts(std::string_view cpp_source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_FACTS_H_
