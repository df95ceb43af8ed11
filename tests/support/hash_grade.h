// A Grade that is a pure function of an answer's bytes, for tests that must repeat to the bit.
#ifndef WARPSMITH_TESTS_SUPPORT_HASH_GRADE_H_
#define WARPSMITH_TESTS_SUPPORT_HASH_GRADE_H_

#include <string_view>

#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {

// Verdict, speed-up, reward, rubric and feedback drawn from the SHA-256 of `answer`: one in eight
// COMPILE_ERROR, one in eight INCORRECT (both with reward 0), the others CORRECT with a reward in [0.3, 3].
// No field depends on anything else, a clock included.
v1::Grade HashGrade(std::string_view answer);

// The answer's bytes of a request: the whole answer, or the source where only that was sent.
std::string_view AnswerBytes(const v1::GradeRequest& request);

// The whole response to `request`: HashGrade of its answer, with the ids of the request.
v1::GradeResponse HashGradeResponse(const v1::GradeRequest& request);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HASH_GRADE_H_
