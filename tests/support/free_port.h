// A port for tests that start listeners of their own.
#ifndef WARPSMITH_TESTS_SUPPORT_FREE_PORT_H_
#define WARPSMITH_TESTS_SUPPORT_FREE_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <random>

#include "core/base/unique_fd.h"
#include "tests/support/catch.h"

namespace warpsmith {

// A TCP port that was free on all addresses a moment ago, below those that the kernel gives to connections
// (32768 and up on Linux), so that none takes it meanwhile. Fails the test when a hundred are taken.
inline int FreePort() {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int port = std::uniform_int_distribution<int>(20000, 32000)(random);
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return port;
  }
  FAIL("no port is free");
  return 0;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FREE_PORT_H_
