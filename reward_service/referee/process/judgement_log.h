// One line of the log for each judgement on a GPU: where its seconds went.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JUDGEMENT_LOG_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JUDGEMENT_LOG_H_

#include <string>

#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/tensors/device_turn.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// For the thread that judged, whose phases it takes. Since the line before: turns on the GPU, how many, with the
// seconds waited and held, and the processes of either zygote that open it.
std::string DescribeJudgement(const v1::Grade& grade, DeviceTurn* turn, Zygote* python, Zygote* native);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JUDGEMENT_LOG_H_
