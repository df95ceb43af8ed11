// The gRPC door: checks a request, hands it to the grader, returns what comes back.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_DOOR_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_DOOR_H_

#include "reward_service/server/reception.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {

// Callback API: no call holds a thread while it waits. A caller that goes away or whose deadline passes
// cancels its work. `reception` must outlive the server that this service is part of. Who calls is told by
// the metadata `authorization` or the client's certificate; UNAUTHENTICATED where that is nobody, whatever
// the call: what the machine is, and what it can do, is for tenants too.
class RewardDoor final : public v1::RewardService::CallbackService {
 public:
  explicit RewardDoor(const Reception* reception) : reception_(reception) {}

  grpc::ServerUnaryReactor* Grade(grpc::CallbackServerContext* context, const v1::GradeRequest* request,
                                  v1::GradeResponse* response) override;
  grpc::ServerBidiReactor<v1::GradeRequest, v1::GradeResponse>* GradeBatch(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;

 private:
  const Reception* const reception_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_DOOR_H_
