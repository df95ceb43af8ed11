// What a program's own text says of its structure, dead parts left out: of C++, and of CUDA.
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
  // What follows is of CUDA. Launches as they stand in the text, and those of them that stand in a loop, or in a
  // function that is called in loops alone.
  int num_launches = 0;
  int num_looped_launches = 0;
  // Launches whose grid, and whose block, is written as 1.
  int num_one_block_launches = 0;
  int num_one_thread_launches = 0;
  // Calls that have the host wait for the GPU, and that ask for the GPU's memory.
  int num_synchronisations = 0;
  int num_gpu_allocations = 0;
  // The thread's own index is multiplied into an index of global memory, as in x[i * cols + c]: neighbours among
  // threads do not read neighbours in memory.
  bool strided_threads = false;
};

// Never fails: what cannot be read is not counted. Facts steer advice and the rubric's second digit, never a
// verdict.
SourceFacts ReadSourceFacts(std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_SOURCE_FACTS_H_
