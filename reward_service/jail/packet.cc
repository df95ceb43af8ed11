#include "reward_service/jail/packet.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/json_depth.h"

namespace warpsmith {
namespace {

constexpr size_t kLengthBytes = 4;

absl::Status SocketFailed(const char* what) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(errno));
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return absl::UnavailableError(message);
  if (errno == EAGAIN || errno == ENOBUFS) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

std::string Frame(const nlohmann::json& fields) {
  // Text of others may hold any bytes: what is not UTF-8 is replaced.
  const std::string text = fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string frame(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i));
  return frame + text;
}

absl::Status WaitReadable(int socket, absl::Time deadline) {
  for (;;) {
    pollfd event{socket, POLLIN, 0};
    const absl::Duration left = deadline - absl::Now();
    int timeout_ms = -1;
    if (left != absl::InfiniteDuration()) {
      timeout_ms = static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0, 1 << 30));
      if (left <= absl::ZeroDuration()) timeout_ms = 0;
    }
    const int result = poll(&event, 1, timeout_ms);
    if (result > 0) return absl::OkStatus();
    if (result == 0) return absl::DeadlineExceededError("no packet before the deadline");
    if (errno != EINTR) return SocketFailed("poll");
  }
}

// Descriptors and sender out of the control messages; descriptors are owned before anything can fail.
void TakeControl(msghdr& message, Packet& packet) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_RIGHTS) {
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        packet.descriptors.emplace_back(fd);
      }
    } else if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials;
      std::memcpy(&credentials, CMSG_DATA(header), sizeof(credentials));
      packet.sender = credentials.pid;
    }
  }
}

absl::Status Parse(std::string_view frame, Packet& packet) {
  size_t length = 0;
  if (frame.size() >= kLengthBytes) {
    for (size_t i = 0; i < kLengthBytes; ++i) length |= size_t{static_cast<uint8_t>(frame[i])} << (8 * i);
  }
  if (frame.size() < kLengthBytes || length != frame.size() - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("packet of ", frame.size(), " bytes says it has ", length));
  }
  const std::string_view json = frame.substr(kLengthBytes);
  if (NestsDeeperThan(json)) return absl::InvalidArgumentError("packet nests too deeply");
  packet.fields = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!packet.fields.is_object()) return absl::InvalidArgumentError("packet is not a JSON object");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakePacketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return SocketFailed("socketpair");
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

absl::Status SendPacket(int socket, const nlohmann::json& fields, const std::vector<int>& descriptors) {
  std::string frame = Frame(fields);
  if (frame.size() > kPacketBytesMax || descriptors.size() > kPacketDescriptorsMax) {
    return absl::InvalidArgumentError(absl::StrCat("packet of ", frame.size(), " bytes and ",
                                                   descriptors.size(), " descriptors is over the limit"));
  }
  // Jails may not call sendmsg, by which descriptors travel.
  if (descriptors.empty()) {
    if (send(socket, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      return SocketFailed("send");
    return absl::OkStatus();
  }
  iovec part{frame.data(), frame.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kPacketDescriptorsMax)> control{};
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return SocketFailed("sendmsg");
  return absl::OkStatus();
}

absl::StatusOr<Packet> ReceivePacket(int socket, absl::Time deadline) {
  if (absl::Status status = WaitReadable(socket, deadline); !status.ok()) return status;
  char frame[kPacketBytesMax];  // not cleared: this runs on the clock
  iovec part{frame, sizeof(frame)};
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(sizeof(int) * kPacketDescriptorsMax) + CMSG_SPACE(sizeof(ucred))>
          control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return SocketFailed("recvmsg");
  Packet packet;
  TakeControl(message, packet);
  if (received == 0) return absl::UnavailableError("the other end is closed");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return absl::InvalidArgumentError("packet over the limit");
  const std::string_view bytes(frame, static_cast<size_t>(received));
  if (absl::Status status = Parse(bytes, packet); !status.ok()) return status;
  return packet;
}

}  // namespace warpsmith
