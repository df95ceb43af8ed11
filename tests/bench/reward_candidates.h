// Candidates for the reward benchmark, made from the cold-start pairs.
#ifndef WARPSMITH_TESTS_BENCH_REWARD_CANDIDATES_H_
#define WARPSMITH_TESTS_BENCH_REWARD_CANDIDATES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {

// `num_candidates` requests with different programs, `candidates_per_task` for each task in a row, as a step
// of training sends them. The programs are the answers of `cold_start` (JSON lines) to a task, then its
// flawed previous programs; where a task has too few, copies with an additional unused constant, which
// compile and run like the original. Request ids start with `prefix`.
absl::StatusOr<std::vector<v1::GradeRequest>> MakeRewardCandidates(const std::filesystem::path& cold_start,
                                                                   int num_candidates,
                                                                   int candidates_per_task,
                                                                   const std::string& prefix);

// One request for each line of `path`, an object with name, reference and answer in KernelBench's form.
absl::StatusOr<std::vector<v1::GradeRequest>> ReadAnswers(const std::filesystem::path& path);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_BENCH_REWARD_CANDIDATES_H_
