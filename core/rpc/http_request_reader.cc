#include "core/rpc/http_request_reader.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/base/absl_view.h"
#include "core/rpc/http_target.h"

namespace warpsmith {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Error = boost::system::error_code;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

HttpRequestReader::HttpRequestReader(size_t header_bytes_max, size_t body_bytes_max)
    : header_bytes_max_(header_bytes_max), body_bytes_max_(body_bytes_max) {
  parser_.header_limit(static_cast<uint32_t>(header_bytes_max));
  parser_.body_limit(body_bytes_max);
}

Error HttpRequestReader::Take(beast::flat_buffer* buffer) {
  while (buffer->size() > 0 && !parser_.is_done()) {
    const bool in_header = !parser_.is_header_done();
    Error error;
    const size_t num_used = parser_.put(buffer->data(), error);
    buffer->consume(num_used);
    num_taken_ += num_used;
    if (error == http::error::need_more) return Check(in_header, num_taken_ + buffer->size());
    if (!error) error = Check(in_header, num_taken_);
    if (error) return error;
  }
  return {};
}

bool HttpRequestReader::TakeExpectation() {
  if (has_told_expectation_ || !parser_.is_header_done() || parser_.is_done()) return false;
  const auto expected = View(parser_.get()[http::field::expect]);
  has_told_expectation_ = version() == 11 && absl::EqualsIgnoreCase(AbslView(expected), "100-continue");
  return has_told_expectation_;
}

Error HttpRequestReader::Check(bool in_header, size_t num_bytes) const {
  if (in_header && num_bytes > header_bytes_max_) return http::error::header_limit;
  if (num_bytes > header_bytes_max_ + body_bytes_max_) return http::error::body_limit;
  return {};
}

HttpRequest HttpRequestReader::Release() {
  http::request<http::string_body> message = parser_.release();
  HttpRequest request;
  request.method = std::string(View(message.method_string()));
  const std::string_view target = View(message.target());
  request.path = std::string(PathOf(target));
  request.query = QueryOf(target);
  for (const auto& field : message) {
    request.headers[absl::AsciiStrToLower(std::string(View(field.name_string())))] =
        std::string(View(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

}  // namespace warpsmith
