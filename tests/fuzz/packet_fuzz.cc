// Any bytes and descriptors on a socket are a packet or INVALID_ARGUMENT, no descriptor is lost, and what was
// read can be sent on. The first byte says how many descriptors come along (bits 0 and 1), whether the length
// in front is made right (bit 2), and whether the kernel names the sender (bit 3).
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "reward_service/jail/fields.h"
#include "reward_service/jail/packet.h"
#include "tests/fuzz/fuzz_input.h"

namespace warpsmith {
namespace {

constexpr size_t kDescriptorsMax = 3;

// The number that the next file gets: one more where a descriptor was lost.
int NextDescriptor() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

void SendBytes(int socket, const std::string& frame, size_t num_descriptors) {
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<int> descriptors(num_descriptors, file.get());
  iovec part{const_cast<char*>(frame.data()), frame.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> control{};
  msghdr message{.msg_iov = &part, .msg_iovlen = 1};
  if (num_descriptors > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * num_descriptors);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(sizeof(int) * num_descriptors), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * num_descriptors);
  }
  WS_CHECK(sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size()));
}

void CheckFields(const Packet& packet) {
  for (const auto& [name, value] : packet.fields.items()) {
    WS_CHECK(Read(packet.fields, TextField{name.c_str(), 8}).size() <= 8);
    const double number = Read(packet.fields, NumberField{name.c_str(), 1, 2, 1.5});
    WS_CHECK(number >= 1 && number <= 2) << number;
    const int64_t integer = Read(packet.fields, IntegerField{name.c_str(), -1, 1, 0});
    WS_CHECK(integer >= -1 && integer <= 1) << integer;
  }
}

void ReceiveAndSendOn(const std::string& frame, size_t num_descriptors, int with_sender) {
  const auto pair = MakePacketPair();
  WS_CHECK(pair.ok());
  setsockopt(pair->second.get(), SOL_SOCKET, SO_PASSCRED, &with_sender, sizeof(with_sender));
  SendBytes(pair->first.get(), frame, num_descriptors);
  const absl::StatusOr<Packet> packet = ReceivePacket(pair->second.get(), absl::Now());
  if (!packet.ok()) {
    WS_CHECK(absl::IsInvalidArgument(packet.status()) || frame.empty()) << packet.status();
    return;
  }
  WS_CHECK(packet->descriptors.size() == num_descriptors) << packet->descriptors.size();
  WS_CHECK((packet->sender == getpid()) == (with_sender != 0)) << packet->sender;
  CheckFields(*packet);
  if (!SendPacket(pair->second.get(), packet->fields).ok()) return;  // may be longer when it is escaped
  const absl::StatusOr<Packet> again = ReceivePacket(pair->first.get(), absl::Now());
  WS_CHECK(again.ok()) << again.status();
  WS_CHECK(again->fields == packet->fields);
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  if (num_bytes == 0) return 0;
  std::string frame(warpsmith::AsText(bytes + 1, num_bytes - 1));
  if ((bytes[0] & 4) != 0) {
    std::string length(4, '\0');
    for (size_t i = 0; i < 4; ++i) length[i] = static_cast<char>(frame.size() >> (8 * i));
    frame.insert(0, length);
  }
  if (frame.size() > 2 * warpsmith::kPacketBytesMax) return 0;
  const int before = warpsmith::NextDescriptor();
  warpsmith::ReceiveAndSendOn(frame, bytes[0] & 3, (bytes[0] & 8) != 0 ? 1 : 0);
  WS_CHECK(warpsmith::NextDescriptor() == before) << "a descriptor was lost";
  return 0;
}
