// The gRPC door: checks a request, hands it to the grader, returns what comes back.
#ifndef WARPSMITH_REWARD_SERVICE_SERVICE_DOOR_H_
#define WARPSMITH_REWARD_SERVICE_SERVICE_DOOR_H_

#include <string>

#include "reward_service/service/grader.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {

struct DoorOptions {
  RequestLimits limits;
  // Stands for machine and toolchain in cache keys.
  std::string environment_key;
  v1::Capabilities capabilities;
};

// Callback API: no call holds a thread while it waits. A caller that goes away or whose deadline passes
// cancels its work. `grader` must outlive the server that this service is part of.
class RewardDoor final : public v1::RewardService::CallbackService {
 public:
  RewardDoor(DoorOptions options, Grader* grader) : options_(std::move(options)), grader_(grader) {}

  grpc::ServerUnaryReactor* Grade(grpc::CallbackServerContext* context, const v1::GradeRequest* request,
                                  v1::GradeResponse* response) override;
  grpc::ServerBidiReactor<v1::GradeRequest, v1::GradeResponse>* GradeBatch(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;

 private:
  const DoorOptions options_;
  Grader* const grader_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVICE_DOOR_H_
