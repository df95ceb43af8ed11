// An HTTP/1.1 server: a handler gets whole requests and answers when it likes, from any thread.
#ifndef WARPSMITH_CORE_RPC_HTTP_SERVER_H_
#define WARPSMITH_CORE_RPC_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/rpc/tls.h"

namespace warpsmith {

struct HttpRequest {
  std::string method;                          // "GET", "POST", ...
  std::string path;                            // without query, percent escapes as they came
  std::map<std::string, std::string> query;    // decoded; of equal names the last
  std::map<std::string, std::string> headers;  // names in lower case; of equal names the last
  std::string body;
  std::string certificate_name;  // common name of the client's certificate, verified; empty: none
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// One request and its answer. Methods may be called from any thread.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  virtual const HttpRequest& request() const = 0;

  // Sends the answer; the first of all answers counts. Nothing happens where the client is gone.
  virtual void Respond(HttpResponse response) = 0;

  // An answer that comes in pieces: its head (`head.body` is the first piece), any number of pieces, its end.
  // Begins as Respond does; what follows a Respond, or an end, is ignored. Returns at once: a client that lets
  // HttpServerOptions::unsent_bytes_max pile up, or takes none of it for transfer_timeout, is cut off.
  virtual void BeginStream(HttpResponse head) = 0;
  virtual void SendPiece(std::string piece) = 0;
  virtual void EndStream() = 0;

  // `abandoned` is called, at most once, when the client goes away before the whole answer was given; at once
  // if it has.
  virtual void OnAbandoned(std::function<void()> abandoned) = 0;
};

// Called on the server's own thread: it must not block.
using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

struct HttpServerOptions {
  std::string address = "127.0.0.1:0";  // "host:port", port 0 for any free one
  std::string address_key;              // as of RpcServerOptions
  TlsIdentity tls;                      // empty: no encryption
  int64_t body_bytes_max = int64_t{4} << 20;
  int64_t header_bytes_max = 16 << 10;
  int num_connections_max = 1024;  // one more is closed at once
  // Each for a whole request to come in, and for a whole answer to go out, however slowly bytes trickle.
  absl::Duration transfer_timeout = absl::Seconds(30);
  absl::Duration idle_timeout = absl::Minutes(2);  // of a connection between requests
  int64_t unsent_bytes_max = int64_t{1} << 20;     // of a stream, given by the handler and not yet taken
  // The answer to what is no request, or over a limit, so that no handler sees it: status and reason. Plain
  // text where it is empty.
  std::function<HttpResponse(int status, const std::string& reason)> refusal;
};

// Owns a running server and its one thread.
class HttpServer {
 public:
  // INVALID_ARGUMENT for an address or TLS files that cannot be used, ALREADY_EXISTS for an address in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           HttpHandler handler);

  // Closes the listener and all connections; answers to exchanges that are still held are dropped.
  virtual ~HttpServer() = default;

  // The given host with the port that was bound.
  virtual const std::string& address() const = 0;

  // Waits at most `timeout` until no request is without its whole answer, sent. For the end of a server, whose
  // handler begins no work any more.
  virtual bool AwaitAnswered(absl::Duration timeout) = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_HTTP_SERVER_H_
