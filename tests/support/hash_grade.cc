#include "tests/support/hash_grade.h"

#include <cstdlib>
#include <string>

#include "core/base/sha256.h"

namespace warpsmith {
namespace {

constexpr char kFormula[] = "hash-of-answer";

// Four hexadecimal digits of `digest` from `offset`, as a number in [0, 1).
double Fraction(const std::string& digest, size_t offset) {
  return static_cast<double>(std::strtoul(digest.substr(offset, 4).c_str(), nullptr, 16)) / 65536.0;
}

void FillDefect(v1::Verdict verdict, v1::Advice advice, const char* finding, v1::Grade* grade) {
  grade->set_verdict(verdict);
  grade->mutable_reward()->set_value(0.0);
  grade->mutable_feedback()->set_finding(finding);
  grade->mutable_feedback()->set_evidence("hash " + grade->source_sha256().substr(0, 8));
  grade->mutable_feedback()->set_advice(advice);
}

void FillCorrect(double fraction, v1::Grade* grade) {
  const double speedup = 2.7 * fraction;
  grade->set_verdict(v1::VERDICT_CORRECT);
  grade->mutable_timing()->set_speedup(speedup);
  grade->mutable_timing()->set_speedup_low(speedup);
  grade->mutable_timing()->set_speedup_high(speedup);
  grade->mutable_timing()->set_distinguishable(speedup < 0.97 || speedup > 1.03);
  grade->mutable_reward()->set_value(0.3 + speedup);
  grade->mutable_feedback()->set_finding("scalar code");
  grade->mutable_feedback()->set_evidence("hash " + grade->source_sha256().substr(0, 8));
  grade->mutable_feedback()->set_advice(v1::ADVICE_VECTORISE);
}

void FillNeutralRubric(v1::Rubric* rubric) {
  for (v1::RubricScore* score : {rubric->mutable_anti_hacking(), rubric->mutable_engineering(),
                                 rubric->mutable_operator_coverage(), rubric->mutable_skill_compliance()}) {
    score->set_score(3);
  }
  rubric->set_total(12);
  rubric->set_source("neutral");
}

}  // namespace

v1::Grade HashGrade(std::string_view answer) {
  const std::string digest = Sha256Hex(answer);
  v1::Grade grade;
  grade.set_source(std::string(answer));
  grade.set_source_sha256(digest);
  grade.mutable_reward()->set_formula(kFormula);
  FillNeutralRubric(grade.mutable_rubric());
  const double kind = Fraction(digest, 0);
  grade.mutable_compile()->set_attempted(true);
  grade.mutable_compile()->set_succeeded(kind >= 0.125);
  if (kind < 0.125) {
    FillDefect(v1::VERDICT_COMPILE_ERROR, v1::ADVICE_FIX_COMPILE_ERROR, "does not compile", &grade);
  } else if (kind < 0.25) {
    FillDefect(v1::VERDICT_INCORRECT, v1::ADVICE_FIX_FORMULA, "wrong values", &grade);
  } else {
    FillCorrect(Fraction(digest, 4), &grade);
  }
  return grade;
}

std::string_view AnswerBytes(const v1::GradeRequest& request) {
  const v1::Candidate& candidate = request.candidate();
  return candidate.has_answer() ? candidate.answer() : candidate.source();
}

v1::GradeResponse HashGradeResponse(const v1::GradeRequest& request) {
  v1::GradeResponse response;
  *response.mutable_grade() = HashGrade(AnswerBytes(request));
  response.mutable_grade()->set_request_id(request.request_id());
  response.mutable_grade()->set_task_id(request.task().id());
  return response;
}

}  // namespace warpsmith
