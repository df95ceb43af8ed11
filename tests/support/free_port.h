// A loopback port for tests that start listeners of their own.
#ifndef WARPSMITH_TESTS_SUPPORT_FREE_PORT_H_
#define WARPSMITH_TESTS_SUPPORT_FREE_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/base/unique_fd.h"
#include "tests/support/catch.h"

namespace warpsmith {

// A TCP port of 127.0.0.1 that was free a moment ago. Fails the test when the kernel gives none.
inline int FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  REQUIRE(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FREE_PORT_H_
