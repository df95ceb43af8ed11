// Test programs that need something that not every machine has.
#ifndef WARPSMITH_TESTS_SUPPORT_SKIP_WHERE_H_
#define WARPSMITH_TESTS_SUPPORT_SKIP_WHERE_H_

#include <string>

namespace warpsmith {

// Returns why the program cannot run on this machine; empty: it can.
using Lack = std::string (*)();

// Makes main ask `lack` before the first test, print the reason that it returns, and end as skipped. REQUIRES: one
// object a program, at namespace scope.
struct SkipWhere {
  explicit SkipWhere(Lack lack);
};

// Returns what the program's `lack` returns; empty where it has none. For main.
std::string ReasonToSkip();

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SKIP_WHERE_H_
