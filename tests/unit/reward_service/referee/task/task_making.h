// A Python zygote for tests of tasks: its start takes seconds.
#ifndef WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_TASK_TASK_MAKING_H_
#define WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_TASK_TASK_MAKING_H_

#include <string>

#include "reward_service/referee/task/task_pool.h"

namespace warpsmith {

// Ends the program when it does not start.
Zygote& TestZygote();
TaskLimits TestLimits();
// On a CPU.
PlaceTask TestPlace();
// A reference with these statements of its constructor and of forward(x), and this list of inputs.
TaskSource SmallTask(const std::string& constructor, const std::string& forward, const std::string& inputs);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_TASK_TASK_MAKING_H_
