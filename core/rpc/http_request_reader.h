// One HTTP/1.1 request out of bytes as they come, within limits.
#ifndef WARPSMITH_CORE_RPC_HTTP_REQUEST_READER_H_
#define WARPSMITH_CORE_RPC_HTTP_REQUEST_READER_H_

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>

#include "core/rpc/http_server.h"

namespace warpsmith {

// Beast limits what of a header it waits for, not the header: a client that sends field by field, or the first
// line of a chunk without end, could fill our memory. Here a header, and a request with all that frames its body,
// have limits however they come.
class HttpRequestReader {
 public:
  HttpRequestReader(size_t header_bytes_max, size_t body_bytes_max);

  // Takes from `buffer` what belongs to the request, until it is done; what is left is the beginning of the
  // next, or waits for more. header_limit, body_limit, or what Beast says of bytes that are no HTTP: nothing
  // can follow then.
  boost::system::error_code Take(boost::beast::flat_buffer* buffer);

  bool done() const { return parser_.is_done(); }

  // Returns true once a request: where its header is there and asks for "100 Continue" before the body comes (RFC 9110,
  // section 10.1.1).
  bool TakeExpectation();

  // Once done.
  unsigned version() const { return parser_.get().version(); }
  bool keep_alive() const { return parser_.get().keep_alive(); }
  HttpRequest Release();  // without the client's certificate

 private:
  boost::system::error_code Check(bool in_header, size_t num_bytes) const;

  const size_t header_bytes_max_;
  const size_t body_bytes_max_;
  size_t num_taken_ = 0;
  bool has_told_expectation_ = false;
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_HTTP_REQUEST_READER_H_
