#include "core/rpc/server_address.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "core/base/unique_fd.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A socket bound at `path`, listening if so asked.
UniqueFd BindSocket(const std::string& path, int backlog) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  if (backlog > 0) REQUIRE(listen(fd.get(), backlog) == 0);
  return fd;
}

}  // namespace

TEST_CASE("TCP and Unix addresses are taken apart and put together with the bound port") {
  CHECK(FormatServerAddress(ParseServerAddress("127.0.0.1:0").value(), 4711) == "127.0.0.1:4711");
  CHECK(FormatServerAddress(ParseServerAddress("[::1]:80").value(), 80) == "[::1]:80");
  CHECK(ParseServerAddress("localhost:65535").value().port == 65535);
  const ServerAddress unix_address = ParseServerAddress("unix:/run/x.sock").value();
  CHECK(unix_address.socket_path == "/run/x.sock");
  CHECK(FormatServerAddress(unix_address, 1) == "unix:/run/x.sock");
}

TEST_CASE("addresses that cannot be are refused") {
  for (const char* address : {"", "localhost", "localhost:", ":80", "localhost:65536", "localhost:-1",
                              "localhost:80x", "::1:80", "unix:"}) {
    INFO(address);
    CHECK(absl::IsInvalidArgument(ParseServerAddress(address).status()));
  }
  CHECK(absl::IsInvalidArgument(ParseServerAddress("unix:/" + std::string(107, 'x')).status()));
  CHECK(ParseServerAddress("unix:/" + std::string(106, 'x')).ok());
}

TEST_CASE("a client's address has a port and no scheme") {
  for (const char* address : {"127.0.0.1:80", "[::1]:80", "name:80", "unix:/run/x.sock",
                              "ipv4:10.0.0.1:80,10.0.0.2:80", "dns:///name:80"}) {
    INFO(address);
    CHECK(CheckClientAddress(address).ok());
  }
  for (const char* address :
       {"", "nohost.example", "name:0", "http://name:80", "http://name", "grpc://name:80"}) {
    INFO(address);
    const absl::Status refused = CheckClientAddress(address);
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Contains("write host:port or unix:/path"));
  }
  CHECK_THAT(std::string(CheckClientAddress("http://name:80").message()),
             Catch::Contains("begins with http://"));
}

TEST_CASE("where a server listens on all interfaces no client dials") {
  for (const char* address :
       {"0.0.0.0:50061", "0:50061", "[::]:50061", "[0::0]:50061", "ipv4:10.0.0.1:50061,0.0.0.0:50061"}) {
    INFO(address);
    const absl::Status refused = CheckClientAddress(address);
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()),
               Catch::Contains("on all interfaces") && Catch::Contains("localhost on the same one"));
  }
  CHECK_THAT(std::string(CheckClientAddress("ipv4:10.0.0.1").message()), Catch::Contains("port is missing"));
  CHECK(CheckClientAddress("0.0.0.0.example:50061").ok());
  CHECK(ParseServerAddress("0.0.0.0:50061").ok());
}

TEST_CASE("a socket with a live server is in use, one left behind is free, a file is in the way") {
  TemporaryDirectory directory;
  const std::string live = directory.path() / "live", dead = directory.path() / "dead",
                    file = directory.path() / "f";
  const UniqueFd listening = BindSocket(live, 1);
  BindSocket(dead, 0);
  std::ofstream(file) << "x";
  CHECK(absl::IsAlreadyExists(CheckSocketFree(live)));
  CHECK(CheckSocketFree(dead).ok());
  CHECK(CheckSocketFree(directory.path() / "absent").ok());
  CHECK(absl::IsAlreadyExists(CheckSocketFree(file)));
}

}  // namespace warpsmith
