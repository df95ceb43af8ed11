// One client of an HTTP server: reads its requests, writes their answers. For core/rpc/http_server.cc alone.
#ifndef WARPSMITH_CORE_RPC_HTTP_CONNECTION_H_
#define WARPSMITH_CORE_RPC_HTTP_CONNECTION_H_

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/rpc/http_posted_exchange.h"
#include "core/rpc/http_request_reader.h"
#include "core/rpc/http_shared.h"
#include "core/rpc/http_tls.h"

namespace warpsmith::http_connection {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using Error = boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
// One type for all handlers: each operation of a stream is compiled once, which takes seconds.
using Handler = std::function<void(Error, size_t)>;

constexpr size_t kReadBytes = 64 << 10;  // at a time
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr size_t kAheadBytes = 4 << 10;  // read of a next request while the present one waits for its answer

inline std::string Chunk(std::string_view piece) {
  return absl::StrCat(absl::Hex(piece.size()), "\r\n", AbslView(piece), "\r\n");
}

// One client. The exchange that it waits for may outlive it.
template <class Stream>
class HttpConnection : public std::enable_shared_from_this<HttpConnection<Stream>> {
 public:
  // The stream is made of `stream_arguments`.
  template <class... StreamArguments>
  explicit HttpConnection(HttpShared* shared, StreamArguments&&... stream_arguments)
      : stream_(std::forward<StreamArguments>(stream_arguments)...), shared_(shared) {
    ++shared_->num_connections;
  }
  ~HttpConnection() {
    SetOpen(false);
    --shared_->num_connections;
  }

  void Start();
  // On the server's thread.
  void Write(HttpResponse response);
  void BeginStream(HttpResponse head);
  void SendPiece(std::string_view piece);
  void EndStream();
  void Close();

 private:
  using Exchange = PostedExchange<HttpConnection>;

  PlainStream& lowest() { return beast::get_lowest_layer(stream_); }
  void Read();
  void ReadMore(bool has_begun);
  void Continue();
  void Received(Error error);
  void WatchForClose();
  void SetOpen(bool is_open);
  void SetFields(const HttpResponse& response, http::fields* fields) const;
  void SendWhole(HttpResponse response, unsigned version, bool keep_alive, Handler done);
  void Flush();
  void Flushed(Error error);
  void Refuse(http::status status, const std::string& message);
  void Sent(Error error, bool keep_alive);
  void Linger();

  Stream stream_;
  beast::flat_buffer buffer_;
  HttpShared* const shared_;
  std::optional<HttpRequestReader> reader_;
  std::shared_ptr<Exchange> exchange_;  // that has no answer yet
  std::string certificate_name_;
  unsigned version_ = 11;
  bool keep_alive_ = false;
  bool is_open_ = false;        // a request has not its whole answer yet
  std::string sending_;         // a whole answer or part of a stream, on its way
  std::string unsent_;          // what follows in a stream
  bool stream_ends_ = false;    // with unsent_
  bool has_ended_ = false;      // the client's side of the connection
  bool reading_ahead_ = false;  // WatchForClose()
  bool next_is_due_ = false;    // once that has ended
};

inline std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  return absl::ToChronoMilliseconds(duration);
}

template <class Stream>
void HttpConnection<Stream>::Start() {
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    lowest().expires_after(Milliseconds(shared_->options.transfer_timeout));
    stream_.async_handshake(ssl::stream_base::server, [self = this->shared_from_this()](Error error) {
      if (error) return self->Close();
      self->certificate_name_ = PeerName(self->stream_.native_handle());
      self->Read();
    });
  } else {
    Read();
  }
}

template <class Stream>
void HttpConnection<Stream>::Read() {
  const HttpServerOptions& options = shared_->options;
  reader_.emplace(static_cast<size_t>(options.header_bytes_max), static_cast<size_t>(options.body_bytes_max));
  // The first byte may be long in coming, the rest may not.
  const bool has_begun = buffer_.size() > 0;
  lowest().expires_after(Milliseconds(has_begun ? options.transfer_timeout : options.idle_timeout));
  ReadMore(has_begun);
}

template <class Stream>
void HttpConnection<Stream>::ReadMore(bool has_begun) {
  const Error error = reader_->Take(&buffer_);
  if (error || reader_->done()) return Received(error);
  if (has_ended_) return Close();  // an end is told once
  if (reader_->TakeExpectation()) return Continue();
  stream_.async_read_some(
      buffer_.prepare(beast::read_size(buffer_, kReadBytes)),
      Handler([self = this->shared_from_this(), has_begun](Error read_error, size_t num_bytes) {
        if (read_error) return self->Close();
        self->buffer_.commit(num_bytes);
        if (!has_begun) {
          self->lowest().expires_after(Milliseconds(self->shared_->options.transfer_timeout));
        }
        self->ReadMore(true);
      }));
}

// The client waits for this before it sends the body; what is over a limit was refused before.
template <class Stream>
void HttpConnection<Stream>::Continue() {
  asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                    Handler([self = this->shared_from_this()](Error error, size_t) {
                      error ? self->Close() : self->ReadMore(true);
                    }));
}

template <class Stream>
void HttpConnection<Stream>::Received(Error error) {
  if (error == http::error::body_limit) {
    return Refuse(http::status::payload_too_large,
                  absl::StrCat("a body may have ", shared_->options.body_bytes_max, " bytes"));
  }
  if (error == http::error::header_limit) {
    return Refuse(http::status::request_header_fields_too_large,
                  absl::StrCat("headers may have ", shared_->options.header_bytes_max, " bytes"));
  }
  if (error) return Refuse(http::status::bad_request, error.message());
  version_ = reader_->version();
  keep_alive_ = reader_->keep_alive();
  lowest().expires_never();
  HttpRequest request = reader_->Release();
  request.certificate_name = certificate_name_;
  exchange_ = std::make_shared<Exchange>(std::move(request), this->shared_from_this(), shared_->mailbox);
  SetOpen(true);
  WatchForClose();
  shared_->handler(exchange_);
}

// A client that hangs up ends its side of the stream. What it sends instead begins its next request; its
// going away will then show when we answer.
template <class Stream>
void HttpConnection<Stream>::WatchForClose() {
  // Held by what waits, so that the connection lives while it is open and unanswered.
  if (buffer_.size() >= kAheadBytes) {
    return lowest().socket().async_wait(asio::ip::tcp::socket::wait_error,
                                        [self = this->shared_from_this()](Error error) {
                                          if (!error && self->exchange_ != nullptr) self->Close();
                                        });
  }
  reading_ahead_ = true;
  stream_.async_read_some(buffer_.prepare(kAheadBytes),
                          Handler([self = this->shared_from_this()](Error error, size_t num_bytes) {
                            self->buffer_.commit(num_bytes);
                            self->reading_ahead_ = false;
                            self->has_ended_ |= error && error != asio::error::operation_aborted;
                            if (std::exchange(self->next_is_due_, false)) return self->Read();
                            if (self->exchange_ == nullptr) return;
                            error ? self->Close() : self->WatchForClose();
                          }));
}

template <class Stream>
void HttpConnection<Stream>::SetOpen(bool is_open) {
  if (is_open_ != is_open) shared_->open_requests.Add(is_open ? 1 : -1);
  is_open_ = is_open;
}

template <class Stream>
void HttpConnection<Stream>::SetFields(const HttpResponse& response, http::fields* fields) const {
  fields->set(http::field::content_type, response.content_type);
  fields->set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) fields->set(name, value);
}

template <class Stream>
void HttpConnection<Stream>::Write(HttpResponse response) {
  if (exchange_ == nullptr) return;
  exchange_.reset();
  Error ignored;
  lowest().socket().cancel(ignored);  // the wait for its close
  SendWhole(std::move(response), version_, keep_alive_,
            [self = this->shared_from_this()](Error error, size_t) { self->Sent(error, self->keep_alive_); });
}

template <class Stream>
void HttpConnection<Stream>::SendWhole(HttpResponse response, unsigned version, bool keep_alive,
                                       Handler done) {
  http::response<http::string_body> whole(static_cast<http::status>(response.status), version,
                                          std::move(response.body));
  SetFields(response, &whole);
  whole.keep_alive(keep_alive);
  whole.prepare_payload();
  std::ostringstream head;
  head << whole.base();
  sending_ = head.str() + whole.body();
  lowest().expires_after(Milliseconds(shared_->options.transfer_timeout));
  asio::async_write(stream_, asio::buffer(sending_), std::move(done));
}

// HTTP/1.0 has no chunks: there the end of the connection ends the answer.
template <class Stream>
void HttpConnection<Stream>::BeginStream(HttpResponse head) {
  if (exchange_ == nullptr) return;
  keep_alive_ = keep_alive_ && version_ == 11;
  http::response<http::empty_body> begin(static_cast<http::status>(head.status), version_);
  SetFields(head, &begin);
  begin.chunked(version_ == 11);
  begin.keep_alive(keep_alive_);
  std::ostringstream text;
  text << begin.base();
  unsent_ = text.str();
  SendPiece(head.body);
}

template <class Stream>
void HttpConnection<Stream>::SendPiece(std::string_view piece) {
  if (exchange_ == nullptr) return;
  if (!piece.empty())
    unsent_ += version_ == 11 ? Chunk(piece) : std::string(piece);  // an empty chunk is the end
  if (std::ssize(unsent_) > shared_->options.unsent_bytes_max) return Close();
  if (sending_.empty()) Flush();
}

template <class Stream>
void HttpConnection<Stream>::EndStream() {
  if (exchange_ == nullptr) return;
  stream_ends_ = true;
  if (version_ == 11) unsent_ += Chunk("");
  if (sending_.empty()) Flush();
}

template <class Stream>
void HttpConnection<Stream>::Flush() {
  if (unsent_.empty()) return Flushed({});
  sending_.swap(unsent_);
  // The wait for the client's close, which is under way, keeps having no limit.
  lowest().expires_after(Milliseconds(shared_->options.transfer_timeout));
  asio::async_write(
      stream_, asio::buffer(sending_),
      Handler([self = this->shared_from_this()](Error error, size_t) { self->Flushed(error); }));
}

template <class Stream>
void HttpConnection<Stream>::Flushed(Error error) {
  sending_.clear();
  if (error) return Close();
  if (!unsent_.empty()) return Flush();
  if (!std::exchange(stream_ends_, false)) return;
  exchange_.reset();
  Error ignored;
  lowest().socket().cancel(ignored);  // the wait for its close
  Sent({}, keep_alive_);
}

template <class Stream>
void HttpConnection<Stream>::Refuse(http::status status, const std::string& message) {
  HttpResponse refusal{.content_type = "text/plain", .body = message + "\n"};
  if (shared_->options.refusal) refusal = shared_->options.refusal(static_cast<int>(status), message);
  refusal.status = static_cast<int>(status);
  SendWhole(std::move(refusal), 11, false, [self = this->shared_from_this()](Error error, size_t) {
    return error || self->has_ended_ ? self->Close() : self->Linger();
  });
}

template <class Stream>
void HttpConnection<Stream>::Sent(Error error, bool keep_alive) {
  SetOpen(false);
  if (error || !keep_alive) return Close();
  sending_.clear();
  // Its cancellation may be told later than the end of our answer, and what it read comes first.
  next_is_due_ = reading_ahead_;
  if (!next_is_due_) Read();
}

// A client that still sends would lose the answer to a connection that is closed at once.
template <class Stream>
void HttpConnection<Stream>::Linger() {
  Error ignored;
  lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.consume(buffer_.size());
  lowest().async_read_some(
      buffer_.prepare(kReadBytes), Handler([self = this->shared_from_this()](Error error, size_t) {
        return error ? self->Close() : self->Linger();  // the timeout of the transfer ends it
      }));
}

template <class Stream>
void HttpConnection<Stream>::Close() {
  if (const std::shared_ptr<Exchange> exchange = std::move(exchange_)) exchange->Abandon();
  SetOpen(false);
  Error ignored;
  lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  lowest().close();
}

}  // namespace warpsmith::http_connection

#endif  // WARPSMITH_CORE_RPC_HTTP_CONNECTION_H_
