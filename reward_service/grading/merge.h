// The last step: from a measurement to the Grade that one request gets.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_MERGE_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_MERGE_H_

#include "reward_service/grading/prepared_request.h"
#include "reward_service/llm_judge/llm_judge.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// Adds to `measurement` what depends on the request: credit, rubric, reward by the formula asked for, feedback, ids.
// `opinion`, where there is one, lowers the rubric of a CORRECT candidate. A pure function: the same arguments give the
// same Grade.
v1::Grade MergeGrade(const PreparedRequest& prepared, const v1::Measurement& measurement,
                     const LlmOpinion* opinion = nullptr);

// A measurement that says only that the service failed.
v1::Measurement Unscorable(const std::string& reason);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_MERGE_H_
