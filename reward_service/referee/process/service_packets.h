// What the service asks of a referee, read from its packets, and how failures are told.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_SERVICE_PACKETS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_SERVICE_PACKETS_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/judge_request.h"

namespace warpsmith {

// Of a `judge`, `record` or `prefetch`. INTERNAL: the packet is malformed.
absl::StatusOr<TaskSource> ReadTask(const Packet& packet);

// Of a `judge`, whose descriptors the packet keeps. INTERNAL: the packet is malformed.
absl::StatusOr<JudgeRequest> ReadJudgeRequest(const Packet& packet);

nlohmann::json FailedPacket(const absl::Status& status);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_SERVICE_PACKETS_H_
