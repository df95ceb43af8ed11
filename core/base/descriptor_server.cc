#include "core/base/descriptor_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int kBacklog = 64;
// Between two tries to accept a peer for whom there was no room.
constexpr absl::Duration kPauseMin = absl::Milliseconds(10), kPauseMax = absl::Seconds(1);

absl::StatusOr<sockaddr_un> AddressOf(const std::filesystem::path& path) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket has ", text.size(), " bytes, 1 to ",
                                                   sizeof(address.sun_path) - 1, " are allowed: ", text));
  }
  std::copy(text.begin(), text.end(), address.sun_path);
  return address;
}

UniqueFd MakeSocket() { return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

bool Connect(int socket, const sockaddr_un& address) {
  return connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool Bind(int socket, const sockaddr_un& address) {
  return bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

absl::StatusOr<UniqueFd> Listen(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  UniqueFd listener = MakeSocket();
  if (!listener.valid()) return ErrnoStatus("cannot make a socket for", path.string());
  bool bound = Bind(listener.get(), address);
  if (!bound && errno == EADDRINUSE) {
    struct stat found = {};
    if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
      return absl::AlreadyExistsError(absl::StrCat(path.string(), " is no socket: name another path"));
    }
    const UniqueFd probe = MakeSocket();
    if (Connect(probe.get(), address) || errno != ECONNREFUSED) {
      return absl::AlreadyExistsError(
          absl::StrCat("another process listens at ", path.string(), ": end it or name another path"));
    }
    unlink(path.c_str());
    bound = Bind(listener.get(), address);
  }
  if (!bound) return ErrnoStatus("cannot listen at", path.string());
  if (chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || listen(listener.get(), kBacklog) != 0) {
    return ErrnoStatus("cannot listen at", path.string());
  }
  return listener;
}

// Empty where the system does not say.
std::optional<uid_t> PeerUser(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

// A user that could take this process's memory anyway.
absl::Status CheckServer(int socket, const std::filesystem::path& path) {
  const std::optional<uid_t> user = PeerUser(socket);
  if (user.has_value() && (*user == geteuid() || *user == 0)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      path.string(), " is served by ", user.has_value() ? absl::StrCat("user ", *user) : "nobody known",
      " and not by user ", geteuid(), " or root: run both as one user"));
}

// Whether accept may do better once others have given something back.
bool IsWantOfRoom(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// What a message carries besides its bytes.
union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr header;  // for its alignment
};

bool Send(int socket, std::string_view text, int descriptor) {
  Control control = {};
  iovec bytes = {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

absl::Status AwaitReadable(int socket, absl::Time deadline, const std::filesystem::path& path) {
  for (;;) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("nothing came from ", path.string(), " in time"));
    }
    pollfd wanted = {.fd = socket, .events = POLLIN, .revents = 0};
    const int64_t milliseconds = std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 60'000);
    const int ready = poll(&wanted, 1, static_cast<int>(milliseconds));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus("cannot wait for", path.string());
  }
}

absl::StatusOr<FetchedDescriptor> Receive(int socket, const std::filesystem::path& path) {
  Control control = {};
  std::string text(kDescriptorTextBytesMax, '\0');
  iovec bytes = {.iov_base = text.data(), .iov_len = text.size()};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && errno != ECONNRESET) return ErrnoStatus("cannot read from", path.string());
  FetchedDescriptor fetched;
  // Room for one is room for two by its alignment: all that came are taken, and more than one is refused.
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  const bool has_rights = header != nullptr && header->cmsg_type == SCM_RIGHTS;
  const size_t num_descriptors = has_rights ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
  std::vector<UniqueFd> descriptors;
  for (size_t i = 0; i < num_descriptors; ++i) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(descriptor));
    descriptors.emplace_back(descriptor);
  }
  if (num_descriptors == 1) fetched.descriptor = std::move(descriptors[0]);
  if (size <= 0 && num_descriptors == 0) {
    return absl::UnavailableError(
        absl::StrCat(path.string(), " gave nothing: it ends, or serves another user"));
  }
  if (!fetched.descriptor.valid() || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " sent ", size,
                     " bytes that are no text with one descriptor: is it another program's?"));
  }
  text.resize(static_cast<size_t>(size));
  fetched.text = std::move(text);
  return fetched;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DescriptorServer>> DescriptorServer::Start(const std::filesystem::path& path,
                                                                          UniqueFd descriptor,
                                                                          std::string text) {
  if (text.empty() || text.size() > kDescriptorTextBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the text of a descriptor has ", text.size(),
                                                   " bytes, 1 to ", kDescriptorTextBytesMax, " are allowed"));
  }
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return ErrnoStatus("cannot make an eventfd for", path.string());
  ASSIGN_OR_RETURN(UniqueFd listener, Listen(path));
  return std::unique_ptr<DescriptorServer>(new DescriptorServer(path, std::move(descriptor), std::move(text),
                                                                std::move(listener), std::move(stop)));
}

DescriptorServer::DescriptorServer(std::filesystem::path path, UniqueFd descriptor, std::string text,
                                   UniqueFd listener, UniqueFd stop)
    : path_(std::move(path)),
      descriptor_(std::move(descriptor)),
      text_(std::move(text)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      thread_([this] { Serve(); }) {}

DescriptorServer::~DescriptorServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
  unlink(path_.c_str());
}

bool DescriptorServer::IsStoppedWithin(absl::Duration pause) const {
  pollfd wanted = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(pause))) > 0;
}

void DescriptorServer::Serve() {
  pthread_setname_np(pthread_self(), "ws-descriptor");
  absl::Duration pause = kPauseMin;
  for (;;) {
    std::array<pollfd, 2> wanted = {pollfd{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
    if (poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) {
      LogError(ErrnoStatus("cannot wait at", path_.string()).ToString());
      return;
    }
    if (wanted[1].revents != 0) return;
    const UniqueFd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.valid() && IsWantOfRoom(errno)) {
      // The peer waits on, and the listener is readable all the time.
      if (pause == kPauseMin)
        LogWarning(ErrnoStatus("trying again to accept a process at", path_.string()).ToString());
      if (IsStoppedWithin(pause)) return;
      pause = std::min(2 * pause, kPauseMax);
      continue;
    }
    if (!peer.valid()) continue;  // it has gone again
    pause = kPauseMin;
    if (PeerUser(peer.get()) != geteuid() || !Send(peer.get(), text_, descriptor_.get())) {
      LogWarning(absl::StrCat("a process that connected to ", path_.string(), " was given nothing"));
    }
  }
}

absl::StatusOr<FetchedDescriptor> FetchDescriptor(const std::filesystem::path& path, absl::Time deadline) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const UniqueFd socket = MakeSocket();
  if (!socket.valid()) return ErrnoStatus("cannot make a socket for", path.string());
  if (!Connect(socket.get(), address)) {
    return absl::UnavailableError(absl::StrCat("nobody gives a descriptor at ", path.string(), ": ",
                                               std::strerror(errno), "; publish again"));
  }
  RETURN_IF_ERROR(CheckServer(socket.get(), path));
  RETURN_IF_ERROR(AwaitReadable(socket.get(), deadline, path));
  return Receive(socket.get(), path);
}

}  // namespace warpsmith
