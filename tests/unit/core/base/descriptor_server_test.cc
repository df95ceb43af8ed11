#include "core/base/descriptor_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

UniqueFd FileWith(const std::string& text) {
  UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  REQUIRE(write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return file;
}

std::string TextOf(const UniqueFd& file) {
  char text[64];
  const ssize_t size = pread(file.get(), text, sizeof(text), 0);
  return std::string(text, size < 0 ? 0 : static_cast<size_t>(size));
}

absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

// Listens at `path` and says nothing, or what a test wants.
UniqueFd ListenAlone(const std::filesystem::path& path) {
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  const std::string text = path.string();
  std::copy(text.begin(), text.end(), address.sun_path);
  REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listener.get(), 8) == 0);
  return listener;
}

}  // namespace

TEST_CASE("a descriptor comes with its text to everybody who asks") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  const auto server = DescriptorServer::Start(path, FileWith("memory"), "version 7").value();
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<FetchedDescriptor> fetched = FetchDescriptor(path, Soon());
    REQUIRE(fetched.ok());
    CHECK(fetched->text == "version 7");
    CHECK(TextOf(fetched->descriptor) == "memory");
    CHECK((fcntl(fetched->descriptor.get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("what was handed out stays when the server ends, and nobody gives it any more") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  auto server = DescriptorServer::Start(path, FileWith("memory"), "text").value();
  const FetchedDescriptor fetched = FetchDescriptor(path, Soon()).value();
  server.reset();
  CHECK(TextOf(fetched.descriptor) == "memory");
  CHECK_FALSE(std::filesystem::exists(path));
  const absl::Status status = FetchDescriptor(path, Soon()).status();
  CHECK(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains(path.string()) && Catch::Contains("publish again"));
}

TEST_CASE("a socket that a dead process left is replaced, a living one's is not") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  { const UniqueFd dead = ListenAlone(path); }
  REQUIRE(std::filesystem::exists(path));
  const auto server = DescriptorServer::Start(path, FileWith("one"), "text").value();
  CHECK(absl::IsAlreadyExists(DescriptorServer::Start(path, FileWith("two"), "text").status()));
  CHECK(TextOf(FetchDescriptor(path, Soon())->descriptor) == "one");
}

TEST_CASE("a file that is no socket stays where it is") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "weights";
  std::ofstream(path) << "of a model";
  const absl::Status refused = DescriptorServer::Start(path, FileWith("memory"), "text").status();
  CHECK(absl::IsAlreadyExists(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("is no socket"));
  CHECK(std::filesystem::file_size(path) == 10);
}

TEST_CASE("a peer that sends two descriptors is refused, and neither stays open") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  const UniqueFd listener = ListenAlone(path), file = FileWith("memory");
  const auto num_open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = num_open();
  std::thread sender([&] {
    const UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int descriptors[] = {file.get(), file.get()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptors))] = {};
    char text[] = "two";
    iovec bytes = {.iov_base = text, .iov_len = 3};
    msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptors));
    std::copy_n(descriptors, 2, reinterpret_cast<int*>(CMSG_DATA(header)));
    sendmsg(peer.get(), &message, MSG_NOSIGNAL);
  });
  const absl::Status refused = FetchDescriptor(path, Soon()).status();
  sender.join();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(num_open() == before);
}

TEST_CASE("who says nothing is waited for until the deadline, who ends is not") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  const UniqueFd listener = ListenAlone(path);
  const absl::Time began = absl::Now();
  CHECK(absl::IsDeadlineExceeded(FetchDescriptor(path, began + absl::Milliseconds(50)).status()));
  CHECK(absl::Now() - began < absl::Seconds(10));
  const UniqueFd waiting(accept(listener.get(), nullptr, nullptr));
  const pid_t child = fork();
  if (child == 0) {  // gives bytes without a descriptor, then nothing
    const UniqueFd peer(accept(listener.get(), nullptr, nullptr));
    (void)!send(peer.get(), "text", 4, 0);
    const UniqueFd other(accept(listener.get(), nullptr, nullptr));
    _exit(0);
  }
  CHECK(absl::IsInvalidArgument(FetchDescriptor(path, Soon()).status()));
  CHECK(absl::IsUnavailable(FetchDescriptor(path, Soon()).status()));
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

TEST_CASE(
    "a server without room for a descriptor rests between its tries, and serves when there is room again") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  const auto server = DescriptorServer::Start(path, FileWith("memory"), "version 7").value();
  const UniqueFd client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  const std::string text = path.string();
  std::copy(text.begin(), text.end(), address.sun_path);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};  // those that are open stay
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const std::clock_t began = std::clock();
  const bool connected = connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  pollfd served = {.fd = client.get(), .events = POLLIN, .revents = 0};
  const int early = poll(&served, 1, 500);
  const double busy_seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(connected);
  CHECK(early == 0);
  CHECK(busy_seconds < 0.25);
  CHECK(poll(&served, 1, 10'000) == 1);
}

TEST_CASE("a socket of another user is not believed") {
  if (geteuid() != 0) {
    WARN("needs root, to be another user");
    return;
  }
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(1);
    const UniqueFd listener = ListenAlone(path);
    if (write(ends[1], "r", 1) != 1) _exit(1);
    pause();
  }
  close(ends[1]);
  char ready = 0;
  CHECK(read(ends[0], &ready, 1) == 1);
  const absl::Status status = FetchDescriptor(path, Soon()).status();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  CHECK(absl::IsPermissionDenied(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("user 65534") && Catch::Contains("as one user"));
}

TEST_CASE("paths and texts that do not fit are refused with their lengths") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "socket";
  const std::string long_path = directory.path() / std::string(120, 'x');
  CHECK(absl::IsInvalidArgument(DescriptorServer::Start(long_path, FileWith("x"), "text").status()));
  CHECK(absl::IsInvalidArgument(FetchDescriptor(long_path, Soon()).status()));
  CHECK(absl::IsInvalidArgument(DescriptorServer::Start(path, FileWith("x"), "").status()));
  CHECK(
      absl::IsInvalidArgument(DescriptorServer::Start(path, FileWith("x"), std::string(4097, 'x')).status()));
}

}  // namespace warpsmith
