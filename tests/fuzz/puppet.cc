#include "tests/fuzz/puppet.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "reward_service/jail/packet.h"

namespace warpsmith {
namespace {

constexpr size_t kLinesBytesMax = 64 << 10;
constexpr size_t kMemoryBytes = 1 << 20;

// As SendPacket, but of text that may be anything.
void SendText(int socket, std::string_view text) {
  std::string frame(4, '\0');
  for (size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i));
  frame.append(text);
  (void)send(socket, frame.data(), frame.size(), MSG_NOSIGNAL);
}

[[noreturn]] void Perform(int socket, std::string_view lines) {
  SendText(socket, R"({"op":"hello"})");
  std::array<char, kPacketBytesMax> request;
  while (!lines.empty() && recv(socket, request.data(), request.size(), 0) > 0) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    SendText(socket, lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  _exit(0);
}

// One message is one puppet: its lines, and its end of a socket.
[[noreturn]] void MakePuppets(int control) {
  for (;;) {
    std::array<char, kLinesBytesMax> lines;
    iovec part{lines.data(), lines.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_bytes{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control_bytes.data();
    message.msg_controllen = control_bytes.size();
    const ssize_t num_bytes = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    if (num_bytes <= 0 || CMSG_FIRSTHDR(&message) == nullptr) _exit(0);
    int socket = -1;
    std::memcpy(&socket, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(socket));
    // A sibling, so that the fuzzer can wait for it.
    const long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (pid == 0) Perform(socket, {lines.data(), static_cast<size_t>(num_bytes) - 1});
    close(socket);
  }
}

}  // namespace

PuppetMaster::PuppetMaster() {
  auto pair = MakePacketPair();
  WS_CHECK(pair.ok());
  void* const memory =
      mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WS_CHECK(memory != MAP_FAILED) << std::strerror(errno);
  memory_ = reinterpret_cast<uint64_t>(memory);
  const pid_t pid = fork();
  WS_CHECK(pid >= 0) << std::strerror(errno);
  if (pid == 0) {
    pair->first.Reset();
    MakePuppets(pair->second.get());
  }
  control_ = std::move(pair->first);
}

std::unique_ptr<ChildProcess> PuppetMaster::Make(const std::string& lines) const {
  WS_CHECK(lines.size() < kLinesBytesMax);
  auto pair = MakePacketPair();
  WS_CHECK(pair.ok());
  const int on = 1;
  WS_CHECK(setsockopt(pair->first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
  int ends[2];
  WS_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  std::string text = lines + "\n";  // an empty message would be an end
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_bytes{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control_bytes.data();
  message.msg_controllen = control_bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_len = CMSG_LEN(sizeof(int));
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  const int socket = pair->second.get();
  std::memcpy(CMSG_DATA(header), &socket, sizeof(socket));
  WS_CHECK(sendmsg(control_.get(), &message, MSG_NOSIGNAL) > 0) << std::strerror(errno);
  return std::make_unique<ChildProcess>(std::move(pair->first), std::move(reader));
}

}  // namespace warpsmith
