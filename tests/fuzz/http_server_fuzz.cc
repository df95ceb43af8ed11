// Whatever comes over a connection, the server's handler sees whole requests within the limits, and the
// connection ends once the client has said all.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/base/check.h"
#include "core/base/unique_fd.h"
#include "core/rpc/http_server.h"
#include "tests/fuzz/fuzz_input.h"

namespace warpsmith {
namespace {

constexpr int64_t kBodyBytesMax = 1024;
constexpr int64_t kHeaderBytesMax = 512;
constexpr int kPatienceMs = 50'000;  // a busy machine is no fault

void Answer(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  WS_CHECK(!request.method.empty());
  WS_CHECK(request.path.find('?') == std::string::npos) << request.path;
  WS_CHECK(request.body.size() <= size_t{kBodyBytesMax}) << request.body.size();
  size_t num_bytes = request.body.size();
  for (const auto& [name, value] : request.headers) num_bytes += name.size() + value.size();
  WS_CHECK(num_bytes <= size_t{kHeaderBytesMax + kBodyBytesMax}) << num_bytes;  // a body may have trailers
  exchange->Respond({.content_type = "text/plain", .body = request.body});
}

int StartServer() {
  auto server =
      HttpServer::Start({.body_bytes_max = kBodyBytesMax, .header_bytes_max = kHeaderBytesMax}, Answer);
  WS_CHECK(server.ok()) << server.status();
  const HttpServer* const running = server->release();  // until the program ends
  return std::atoi(running->address().substr(running->address().rfind(':') + 1).c_str());
}

UniqueFd Connect(int port) {
  static uint32_t num_connections = 0;
  // Each from an address of its own, for ports of closed connections rest a while.
  sockaddr_in own{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK + num_connections++ % 4096)}};
  sockaddr_in other{.sin_family = AF_INET,
                    .sin_port = htons(static_cast<uint16_t>(port)),
                    .sin_addr = {htonl(INADDR_LOOPBACK)}};
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  WS_CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)) == 0);
  WS_CHECK(connect(fd.get(), reinterpret_cast<sockaddr*>(&other), sizeof(other)) == 0);
  return fd;
}

// Whether the server says something or ends the connection. libFuzzer's own alarm, which goes off in the
// eleventh minute, interrupts.
bool HearsFrom(int client) {
  pollfd event{client, POLLIN, 0};
  int num_events = 0;
  do {
    num_events = poll(&event, 1, kPatienceMs);
  } while (num_events < 0 && errno == EINTR);
  return num_events == 1;
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  static const int port = warpsmith::StartServer();
  const warpsmith::UniqueFd client = warpsmith::Connect(port);
  // A server that has refused may have closed already.
  (void)send(client.get(), bytes, num_bytes, MSG_NOSIGNAL);
  (void)shutdown(client.get(), SHUT_WR);
  char answer[4096];
  ssize_t num_read = 0;
  do {
    WS_CHECK(warpsmith::HearsFrom(client.get())) << "the server keeps the connection open";
    num_read = recv(client.get(), answer, sizeof(answer), 0);
  } while (num_read > 0);
  return 0;
}
