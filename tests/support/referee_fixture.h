// One referee for all cases of a test program: its start takes seconds.
#ifndef WARPSMITH_TESTS_SUPPORT_REFEREE_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_REFEREE_FIXTURE_H_

#include <string>

#include "reward_service/measure/referee.h"

namespace warpsmith {

// A referee on the machine's last core. Ends the program when it does not start.
Referee& TestReferee();

// A task of tests/data/tasks, by name without ".py".
TaskSource TestTask(const std::string& name);
// A task from its source.
TaskSource MakeTask(const std::string& source);

// Judges a native candidate, compiled here, with a minute's patience. Ends the program on failures of
// infrastructure.
v1::Measurement JudgeNative(const TaskSource& task, const std::string& candidate, bool verify_only = true);
// Judges a Python candidate without extensions in the same way, of a task that allows all libraries.
v1::Measurement JudgePython(const TaskSource& task, const std::string& candidate, bool verify_only = true);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_REFEREE_FIXTURE_H_
