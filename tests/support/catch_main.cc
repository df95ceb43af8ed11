// Main of all test programs. Catch2 v2 is compiled here, once.
#include <cstdio>
#include <string>

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "tests/support/skip_where.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE
  if (const std::string reason = warpsmith::ReasonToSkip(); !reason.empty()) {
    std::printf("skipped: %s\n", reason.c_str());
    return kSkipped;
  }
  return Catch::Session().run(argc, argv);
}
