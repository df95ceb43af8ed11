// The one place where the referee's and the compiler's own values become messages.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_WIRE_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_WIRE_H_

#include <string>

#include "reward_service/compiler/compiler.h"
#include "reward_service/measure/judgement.h"
#include "reward_service/scoring/feedback.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// What was found out about a program on a task: everything of a Grade that depends on neither request nor
// formula.
struct Measurement {
  v1::Grade grade;
  DefectFacts defects;
};

v1::Verdict ToVerdict(Outcome outcome);
v1::Compile ToProto(const CompiledProgram& program, const std::string& compiler);

// Verdict, reason, correctness, timing, profile and the phases that the referee measured.
void FillFromJudgement(const Judgement& judgement, Measurement* measurement);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_WIRE_H_
