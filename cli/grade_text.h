// A Grade for people.
#ifndef WARPSMITH_CLI_GRADE_TEXT_H_
#define WARPSMITH_CLI_GRADE_TEXT_H_

#include <string>

#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// A table of what the grade says, a line each, parts that did not run left out. Text that came from the
// candidate is escaped.
std::string GradeText(const v1::Grade& grade);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_GRADE_TEXT_H_
