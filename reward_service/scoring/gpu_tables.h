// The rows of the rubric that differ on a GPU: how well it is used, and what shows that an advice was followed.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_GPU_TABLES_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_GPU_TABLES_H_

#include <string>

#include "reward_service/scoring/kernel_facts.h"
#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

struct EngineeringRow {
  int score;
  std::string condition;
  const char* reason;
};

// Does it use the GPU? 1 to 5, as the rows of a CPU.
EngineeringRow EngineeringOnGpu(const v1::Timing& timing, const v1::Credit& credit,
                                const v1::Profile& profile, const KernelFacts& kernels);

struct AdviceOutcome {
  bool done = false;
  std::string condition;
};

// Whether `advice`, which is no repair, was followed. `by_time` says so by the speed-up before and after, which alone
// tells it of what the text shows: launches, waiting, strides. What the machine code shows counts with it: a line that
// never runs can have wide loads, but makes nothing faster.
AdviceOutcome FollowedOnGpu(v1::Advice advice, const KernelFacts& kernels, const AdviceOutcome& by_time);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_GPU_TABLES_H_
