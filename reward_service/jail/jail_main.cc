// warpsmith-jail SOCKET: the zygote of native jails. Forks one for every {"op":"fork"} with two
// descriptors (the jail's socket and the pipe of its standard output) and answers {"op":"forked"} or
// {"op":"failed"}.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "reward_service/jail/enter_jail.h"
#include "reward_service/jail/fork_jail.h"
#include "reward_service/jail/native_runner.h"
#include "reward_service/jail/packet.h"

namespace warpsmith {
namespace {

JailRights ReadRights(const nlohmann::json& fields) {
  JailRights rights;
  rights.uid = static_cast<uint32_t>(IntegerField(fields, "uid", 1, 1 << 20, 64000));
  rights.memory_bytes_max =
      IntegerField(fields, "memory_bytes_max", 1 << 20, int64_t{1} << 50, int64_t{1} << 30);
  rights.address_bytes_max =
      IntegerField(fields, "address_bytes_max", 1 << 20, int64_t{1} << 50, int64_t{1} << 30);
  rights.tmp_bytes_max = IntegerField(fields, "tmp_bytes_max", 1 << 12, int64_t{1} << 32, 64 << 20);
  rights.cpu_seconds_max = static_cast<int>(IntegerField(fields, "cpu_seconds_max", 1, 86400, 10));
  rights.num_threads_max = static_cast<int>(IntegerField(fields, "num_threads_max", 1, 4096, 64));
  return rights;
}

// The jail's whole life. Its standard output goes to a pipe that nobody waits for.
[[noreturn]] void LiveAsJail(const Packet& packet, int parent_socket) {
  const int socket = packet.descriptors[0].get();
  close(parent_socket);
  dup2(packet.descriptors[1].get(), STDOUT_FILENO);
  dup2(packet.descriptors[1].get(), STDERR_FILENO);
  absl::StatusOr<UniqueFd> libraries = EnterJail(ReadRights(packet.fields));
  if (!libraries.ok()) {
    (void)SendPacket(socket, {{"op", "failed"}, {"error", libraries.status().ToString()}});
    _exit(1);
  }
  if (!SendPacket(socket, {{"op", "hello"}}).ok()) _exit(1);
  _exit(RunNativeJail(socket, *std::move(libraries)));
}

int ServeForks(int socket) {
  for (;;) {
    const absl::StatusOr<Packet> packet = ReceivePacket(socket);
    if (!packet.ok()) return packet.status().code() == absl::StatusCode::kUnavailable ? 0 : 1;
    if (packet->descriptors.size() != 2) return 1;
    const absl::StatusOr<ForkSide> side = ForkJail();
    if (side.ok() && *side == ForkSide::kJail) LiveAsJail(*packet, socket);
    const nlohmann::json answer = side.ok()
                                      ? nlohmann::json{{"op", "forked"}}
                                      : nlohmann::json{{"op", "failed"}, {"error", side.status().ToString()}};
    if (!SendPacket(socket, answer).ok()) return 1;
  }
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "warpsmith-jail: started by the referee only\n");
    return 2;
  }
  return warpsmith::ServeForks(std::atoi(argv[1]));
}
