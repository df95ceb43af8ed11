// Finds the row of feedback for a program that is right: the facts that rows look at, and the rows of a GPU.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_GPU_FEEDBACK_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_GPU_FEEDBACK_H_

#include <optional>
#include <string>

#include "absl/types/span.h"
#include "reward_service/program/source_facts.h"
#include "reward_service/scoring/kernel_facts.h"
#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// Holds the facts that rows look at.
struct Performance {
  const v1::Profile& profile;
  const SourceFacts& facts;
  int num_lane_cores;
  const std::optional<KernelFacts>& kernels;  // of a program on a GPU
  double speedup = 0;
  bool distinguishable = false;
  bool faster = false;
  // So short a call waits for no memory, and threads or a kernel's code cost less than its launch.
  bool too_short = false;
  // The bandwidth is known beside the ceiling, and near it or far from it. A call that is too short has none:
  // its time may be no more than a bound.
  bool near_ceiling = false;
  bool far_from_ceiling = false;
};

struct Row {
  const char* finding;
  v1::Advice advice;
  bool (*applies)(const Performance&);
  // Adds the fact by which the row was chosen to the numbers that every finding has.
  std::string (*number)(const Performance&) = [](const Performance&) { return std::string(); };
};

// Returns ", 1 pass" or ", 2 passes".
std::string Count(int number, const char* one, const char* several);

// Returns what is looked for on a GPU, in this order, before what is said of any program.
absl::Span<const Row> GpuRows();

// Returns the kernels that took the longest, as the program told them.
std::string KernelsText(const v1::Profile& profile);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_GPU_FEEDBACK_H_
