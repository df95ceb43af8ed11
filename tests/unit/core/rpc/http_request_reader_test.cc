#include "core/rpc/http_request_reader.h"

#include <boost/asio/buffer.hpp>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

namespace http = boost::beast::http;
using Error = boost::system::error_code;

const std::string kChunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";

// A reader of 100 bytes of header and 50 of body, given `text` in pieces.
struct Reading {
  explicit Reading(const std::string& text, size_t piece_bytes = 7) {
    for (size_t begin = 0; begin < text.size() && !error; begin += piece_bytes) {
      const std::string piece = text.substr(begin, piece_bytes);
      boost::asio::buffer_copy(buffer.prepare(piece.size()), boost::asio::buffer(piece));
      buffer.commit(piece.size());
      error = reader.Take(&buffer);
    }
  }

  boost::beast::flat_buffer buffer;
  HttpRequestReader reader{100, 50};
  Error error;
};

TEST_CASE("a request is taken, however it comes, and no byte of the next") {
  const std::string text = "POST /a?b=c HTTP/1.1\r\nX-Name: v\r\nContent-Length: 4\r\n\r\nbody";
  for (const size_t piece_bytes : {1, 7, 1000}) {
    Reading whole(text + "GET", piece_bytes);
    REQUIRE(whole.reader.done());
    CHECK(whole.buffer.size() == 3);
    CHECK(whole.reader.keep_alive());
    const HttpRequest request = whole.reader.Release();
    CHECK(request.method == "POST");
    CHECK(request.path == "/a");
    CHECK(request.query.at("b") == "c");
    CHECK(request.headers.at("x-name") == "v");
    CHECK(request.body == "body");
  }
  CHECK_FALSE(Reading(text.substr(0, text.size() - 1)).reader.done());
}

TEST_CASE("a header has its limit, in one field or in many") {
  const std::string field = "A: 345678\r\n";
  std::string text = "GET / HTTP/1.0\r\n";
  for (int i = 0; i < 7; ++i) text += field;
  CHECK(Reading(text + "B:7\r\n\r\n").reader.done());  // 100
  CHECK(Reading(text + field + "\r\n").error == http::error::header_limit);
  CHECK(Reading("GET / HTTP/1.0\r\nA: " + std::string(100, 'x')).error == http::error::header_limit);
  CHECK(Reading("GET /" + std::string(100, 'x')).error == http::error::header_limit);
}

TEST_CASE("a body has its limit, and what frames it counts") {
  CHECK(Reading("POST / HTTP/1.1\r\nContent-Length: 51\r\n\r\n").error == http::error::body_limit);
  CHECK(Reading(kChunked + "5\r\nhello\r\n0\r\n\r\n").reader.done());
  std::string dripping = kChunked, endless = kChunked + "1;name=", trailing = kChunked + "0\r\n";
  for (int i = 0; i < 40; ++i) {
    dripping += "1\r\nx\r\n";
    endless += "more";
    trailing += "X: y\r\n";
  }
  CHECK(Reading(dripping).error == http::error::body_limit);
  CHECK(Reading(endless).error == http::error::body_limit);
  CHECK(Reading(trailing).error == http::error::body_limit);
}

TEST_CASE("an expectation is told once, behind the header, where a body is still to come") {
  const std::string head = "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  Reading waiting("POST / HTTP/1.1\r\n" + head);
  CHECK(waiting.reader.TakeExpectation());
  CHECK_FALSE(waiting.reader.TakeExpectation());
  CHECK_FALSE(Reading("POST / HTTP/1.1\r\nExpect: 100-continue\r\n").reader.TakeExpectation());
  CHECK_FALSE(Reading("POST / HTTP/1.0\r\n" + head).reader.TakeExpectation());
  CHECK_FALSE(Reading("POST / HTTP/1.1\r\n" + head + "ok").reader.TakeExpectation());
  CHECK_FALSE(Reading("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n").reader.TakeExpectation());
}

TEST_CASE("what is no HTTP is an error") {
  CHECK(Reading("\x16\x03\x01 what is this\r\n\r\n").error != Error());
  CHECK(Reading("GET / HTTP/1.1\r\nno field\r\n\r\n").error != Error());
}

}  // namespace
}  // namespace warpsmith
