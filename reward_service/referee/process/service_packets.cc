#include "reward_service/referee/process/service_packets.h"

#include <string>
#include <utility>

#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/measure/request_json.h"

namespace warpsmith {

absl::StatusOr<TaskSource> ReadTask(const Packet& packet) {
  if (packet.descriptors.empty()) return absl::InternalError("a request without its task");
  ASSIGN_OR_RETURN(std::string source,
                   ReadMemoryFile(packet.descriptors[0].get(), service::Judge::kSourceBytesMax));
  return TaskSource{Read(packet.fields, service::Judge::key), std::move(source)};
}

absl::StatusOr<JudgeRequest> ReadJudgeRequest(const Packet& packet) {
  using Message = service::Judge;
  if (packet.descriptors.size() < 2) return absl::InternalError("a request without its program");
  JudgeRequest request;
  ASSIGN_OR_RETURN(request.task, ReadTask(packet));
  const bool native = Read(packet.fields, Message::kind) == Message::kNative;
  request.kind = native ? CandidateKind::kNative : CandidateKind::kKernelBenchPython;
  if (native) {
    request.library_fd = packet.descriptors[1].get();
  } else {
    ASSIGN_OR_RETURN(request.source,
                     ReadMemoryFile(packet.descriptors[1].get(), service::Judge::kSourceBytesMax));
  }
  for (size_t i = 2; i < packet.descriptors.size(); ++i)
    request.extension_fds.push_back(packet.descriptors[i].get());
  request.limits = Read(packet.fields, Message::limits).get<JudgeLimits>();
  request.timing = Read(packet.fields, Message::timing).get<TimingEffort>();
  request.with_blas = Read(packet.fields, Message::with_blas);
  request.with_torch = Read(packet.fields, Message::with_torch);
  request.with_streams = Read(packet.fields, Message::with_streams);
  request.verify_only = Read(packet.fields, Message::verify_only);
  request.another_follows = Read(packet.fields, Message::another_follows);
  if (packet.fields.contains(Message::seed.name)) request.seed = Read(packet.fields, Message::seed);
  return request;
}

nlohmann::json FailedPacket(const absl::Status& status) {
  return Make<service::Failed>({{service::Failed::code, static_cast<int>(status.code())},
                                {service::Failed::error, std::string(status.message())}});
}

}  // namespace warpsmith
