// What is to be said of a machine's facts, with the way out of each trouble.
#ifndef WARPSMITH_CLI_DIAGNOSIS_H_
#define WARPSMITH_CLI_DIAGNOSIS_H_

#include <string>
#include <vector>

#include "cli/system_facts.h"

namespace warpsmith {

struct Finding {
  enum class Level { kGood, kWarning, kFailure };  // a failure stops `warpsmith up`; a warning makes it worse

  Level level = Level::kGood;
  std::string subject;  // "sandbox"
  std::string text;     // what was found
  std::string remedy;   // what to do; empty when good
};

// One finding a subject, in a fixed order.
std::vector<Finding> Diagnose(const SystemFacts& facts);

// `warpsmith doctor`: prints findings to standard output; 1 if one is a failure.
int RunDoctor();

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_DIAGNOSIS_H_
