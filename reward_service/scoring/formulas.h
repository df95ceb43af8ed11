// Reward formulas: pure functions from measurements to a number, with every term that led to it.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_FORMULAS_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_FORMULAS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// What a formula may look at. Speed-ups are reference time / candidate time; the reference is eager PyTorch.
struct RewardInputs {
  v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;
  bool compiled = false;
  double speedup = 0.0;
  // As ComputeCredit() has them: the credited speed-up, and W, the part that libraries could do.
  double credited_speedup = 0.0;
  double library_share = 0.0;
  // Sum of the four rubric dimensions, 4 to 20.
  int rubric_total = 12;
  v1::Skill skill = v1::SKILL_GENERATE;
  // Over the program that torch.compile makes of the reference, where that was measured.
  std::optional<double> compile_speedup;
};

// The default, and all names in the order in which GetCapabilities lists them.
constexpr std::string_view kDefaultFormula = "warpsmith-v3";
std::vector<std::string_view> FormulaNames();

// The reward by formula `name`; empty: the default. INVALID_ARGUMENT for a name that is not known. A verdict
// of UNSCORABLE or INVALID_TASK, or a value that is not finite, leaves `value` absent: such a sample has no
// reward, which is not a reward of 0.
//
//   warpsmith-v3   0 unless correct; (min(max(a, 0), 5) + 0.3 (1 - W)) (1 + lambda (r - 0.5)) with a = credited
//                  speed-up: the bonus belongs to own work
//   warpsmith-v2   warpsmith-v3 with the whole bonus of 0.3
//   warpsmith-v1   warpsmith-v2, clamped to [0, 3]
//   stitchcuda-v1  0 unless correct; clamp((min(max(s, 0), 5) + 0.3) (1 + lambda (r - 0.5)), 0, 3),
//                  r = (rubric total - 4) / 16, lambda = 1 for skill 1 and 0.7 for skill 2
//                  (arXiv 2603.02637)
//   cuda-agent-v1  -1 unless correct; 1; 2 when over 5 % faster than eager; 3 when also over 5 % faster
//                  than torch.compile (arXiv 2602.24286)
//   kevin-v1       0 unless correct; 0.3 + s (arXiv 2507.11948)
//   kernelgym-v1   -0.5 not compiled, -0.3 not correct, -0.1 slower than eager; then 0.2, 0.4, 0.6, 0.8, 1.0
//                  from 1, 1.2, 1.5, 2, 3 times (arXiv 2602.05885)
absl::StatusOr<v1::Reward> ComputeReward(std::string_view name, const RewardInputs& inputs);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_FORMULAS_H_
