// Wire form of grpc.health.v1 (HealthCheckRequest.service 1, HealthCheckResponse.status 1), whose generated
// code is not packaged and whose proto libgrpc++ may register itself.
#ifndef WARPSMITH_CORE_RPC_HEALTH_MESSAGE_H_
#define WARPSMITH_CORE_RPC_HEALTH_MESSAGE_H_

#include <string>
#include <string_view>

namespace warpsmith {

// grpc.health.v1.HealthCheckResponse.ServingStatus.
enum class HealthStatus { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

std::string EncodeHealthCheckRequest(const std::string& service);

// kUnknown for what cannot be read.
HealthStatus DecodeHealthCheckResponse(std::string_view bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_HEALTH_MESSAGE_H_
