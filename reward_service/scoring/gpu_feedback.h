// What a Coder is told about a program that ran on a GPU, and is right.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_GPU_FEEDBACK_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_GPU_FEEDBACK_H_

#include <string>

#include "reward_service/program/source_facts.h"
#include "reward_service/scoring/kernel_facts.h"
#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

struct GpuFinding {
  const char* finding;
  // Behind the speed-up: bandwidth, launches, and the one number that the finding was chosen for; then the kernels that
  // took the longest, where the program told them.
  std::string numbers;
  v1::Advice advice;
};

// The first row that applies to `grade`, of a CORRECT program whose speed-up is credited. A pure function.
GpuFinding FindOnGpu(const v1::Grade& grade, const SourceFacts& source, const KernelFacts& kernels);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_GPU_FEEDBACK_H_
