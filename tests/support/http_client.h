// The least of an HTTP client, for tests: a socket, what is sent, what comes.
#ifndef WARPSMITH_TESTS_SUPPORT_HTTP_CLIENT_H_
#define WARPSMITH_TESTS_SUPPORT_HTTP_CLIENT_H_

#include <string>

#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

struct HttpReply {
  int status = 0;       // 0: the connection ended before an answer, or 30 s passed
  std::string headers;  // as they came, status line included
  std::string body;
};

// One connection to "host:port"; fails the test when there is none.
class HttpClient {
 public:
  explicit HttpClient(const std::string& address);

  void Send(const std::string& bytes);
  // The next answer, by its Content-Length; of one in chunks the head alone.
  HttpReply Receive();
  // The next chunk of such an answer; empty: it has ended, or the connection has.
  std::string ReceiveChunk();
  // Whether the other side closes within `timeout`.
  bool IsClosedWithin(absl::Duration timeout);
  void Close() { socket_.Reset(); }
  void EndSending();

  HttpReply Get(const std::string& path);
  HttpReply Post(const std::string& path, const std::string& body);

 private:
  bool ReadMore();

  UniqueFd socket_;
  std::string received_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HTTP_CLIENT_H_
