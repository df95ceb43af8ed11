// Test programs that need something that not every machine has.
#ifndef WARPSMITH_TESTS_SUPPORT_SKIP_WHERE_H_
#define WARPSMITH_TESTS_SUPPORT_SKIP_WHERE_H_

#include <string>

namespace warpsmith {

// Returns why the program cannot run on this machine; empty: it can.
using Lack = std::string (*)();

// Skips the program where `lack` returns a reason, which is printed. At namespace scope, once a program: main asks
// before the first test.
struct SkipWhere {
  explicit SkipWhere(Lack lack);
};

// Returns the reason, or nothing; for main.
std::string ReasonToSkip();

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SKIP_WHERE_H_
