// What is to happen on the GPUs that are not there: it stands in the file that FAKE_CUDA names, read at each turn:
//
//   gpus N        so many GPUs; without the line, one. CUDA_VISIBLE_DEVICES may name one of them by its UUID
//   gone N        GPU N is there no more, and whatever is asked of a process on it fails
//   version N     what cuDriverGetVersion says
//   rest G M      a launch by this process after G milliseconds without one takes M milliseconds, as one does while the
//                 driver recovers from a fault
//   busy N        the next N launches take as long as the turn of another process; the line counts down
//   memory M      so many MiB has a GPU; without the line, 8192
//   free P        so many percent of a GPU's memory are free; without the line, seven eighths
//   fail NAME R   the function NAME returns R from now on
//   throttle F N  of NVML's readings in this process since the line was written, N from number F on, counted from 0,
//                 say two thirds of the clock, and a power cap
//   late NAME M   the function NAME takes M milliseconds longer from now on
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_SCRIPT_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_SCRIPT_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "reward_service/cuda/driver_api.h"

namespace warpsmith::fake_cuda {

struct Script {
  int num_gpus = 1;
  int version = 13000;
  int num_busy = 0;
  int rest_after_ms = 0, rest_ms = 0;
  size_t memory_bytes = size_t{8} << 30;
  double free_percent = 87.5;
  int first_throttled = 0;
  int num_throttled = 0;
  std::string throttle_line;
  std::set<int> gone;
  std::map<std::string, int> failing, late_ms;
};

Script ReadScript();

// The GPU that CUDA_VISIBLE_DEVICES names: its number is the last byte of its UUID; -1: it names none of these.
int NamedGpu();

// The functions' first line, or where they need something: whether the script has them fail, once they have taken as
// long as it says.
cuda::Result Turn(const char* name);

#define RETURN_IF_FAILING() \
  if (const Result result = Turn(__func__); result != 0) return result

}  // namespace warpsmith::fake_cuda

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_SCRIPT_H_
