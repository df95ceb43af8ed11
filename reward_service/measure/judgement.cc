#include "reward_service/measure/judgement.h"

namespace warpsmith {

std::string OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCorrect:
      return "correct";
    case Outcome::kIncorrect:
      return "incorrect";
    case Outcome::kWrongShape:
      return "wrong_shape";
    case Outcome::kWrongDtype:
      return "wrong_dtype";
    case Outcome::kNonFinite:
      return "non_finite";
    case Outcome::kRuntimeError:
      return "runtime_error";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kHack:
      return "hack";
    case Outcome::kInvalidTask:
      return "invalid_task";
  }
  return "unknown";
}

}  // namespace warpsmith
