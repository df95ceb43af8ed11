#include "core/rpc/http_server.h"

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/http_request_reader.h"
#include "core/rpc/http_tls.h"
#include "core/rpc/server_address.h"

namespace warpsmith {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using Error = boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr size_t kReadBytes = 64 << 10;  // at a time
constexpr size_t kAheadBytes = 4 << 10;  // read of a next request while the present one waits for its answer

// The way to the server's thread, for those who may outlive the server.
class Mailbox {
 public:
  explicit Mailbox(asio::io_context* context) : context_(context) {}
  template <class Work>
  void Post(Work&& work) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (context_ != nullptr) asio::post(*context_, std::forward<Work>(work));
  }
  void Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
  }

 private:
  std::mutex mutex_;
  asio::io_context* context_;
};

// What all connections of a server share.
struct Shared {
  HttpServerOptions options;
  HttpHandler handler;
  std::atomic<int> num_connections{0};
  std::shared_ptr<Mailbox> mailbox;
};

// One client. The exchange that it waits for may outlive it.
template <class Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  // The stream is made of `stream_arguments`.
  template <class... StreamArguments>
  explicit Connection(Shared* shared, StreamArguments&&... stream_arguments)
      : stream_(std::forward<StreamArguments>(stream_arguments)...), shared_(shared) {
    ++shared_->num_connections;
  }
  ~Connection() { --shared_->num_connections; }

  void Start();
  // On the server's thread.
  void Write(HttpResponse response);
  void Close();

 private:
  class Exchange;

  PlainStream& lowest() { return beast::get_lowest_layer(stream_); }
  void Read();
  void ReadMore(bool has_begun);
  void Received(Error error);
  void WatchForClose();
  void Refuse(http::status status, const std::string& message);
  void Sent(Error error, bool keep_alive);
  void Linger();

  Stream stream_;
  beast::flat_buffer buffer_;
  Shared* const shared_;
  std::optional<HttpRequestReader> reader_;
  std::optional<http::response<http::string_body>> response_;
  std::shared_ptr<Exchange> exchange_;  // that has no answer yet
  std::string certificate_name_;
  unsigned version_ = 11;
  bool keep_alive_ = false;
  bool has_ended_ = false;      // the client's side of the stream
  bool reading_ahead_ = false;  // WatchForClose()
  bool next_is_due_ = false;    // once that has ended
};

template <class Stream>
class Connection<Stream>::Exchange final : public HttpExchange {
 public:
  Exchange(HttpRequest request, const std::shared_ptr<Connection>& connection,
           std::shared_ptr<Mailbox> mailbox)
      : request_(std::move(request)), connection_(connection), mailbox_(std::move(mailbox)) {}

  const HttpRequest& request() const override { return request_; }

  void Respond(HttpResponse response) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return;
      ended_ = true;
      abandoned_ = nullptr;
    }
    mailbox_->Post([connection = connection_, answer = std::move(response)]() mutable {
      if (const auto alive = connection.lock()) alive->Write(std::move(answer));
    });
  }

  void OnAbandoned(std::function<void()> abandoned) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!gone_) {
        if (!ended_) abandoned_ = std::move(abandoned);
        return;
      }
    }
    abandoned();
  }

  void Abandon() {
    std::function<void()> abandoned;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return;
      ended_ = gone_ = true;
      abandoned.swap(abandoned_);
    }
    if (abandoned) abandoned();
  }

 private:
  const HttpRequest request_;
  const std::weak_ptr<Connection> connection_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::mutex mutex_;
  bool ended_ = false;  // answered or abandoned
  bool gone_ = false;
  std::function<void()> abandoned_;
};

std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  return absl::ToChronoMilliseconds(duration);
}

template <class Stream>
void Connection<Stream>::Start() {
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
void Connection<Stream>::Read() {
  const HttpServerOptions& options = shared_->options;
  reader_.emplace(static_cast<size_t>(options.header_bytes_max), static_cast<size_t>(options.body_bytes_max));
  // The first byte may be long in coming, the rest may not.
  const bool has_begun = buffer_.size() > 0;
  lowest().expires_after(Milliseconds(has_begun ? options.transfer_timeout : options.idle_timeout));
  ReadMore(has_begun);
}

template <class Stream>
void Connection<Stream>::ReadMore(bool has_begun) {
  const Error error = reader_->Take(&buffer_);
  if (error || reader_->done()) return Received(error);
  if (has_ended_) return Close();  // an end is told once
  stream_.async_read_some(
      buffer_.prepare(beast::read_size(buffer_, kReadBytes)),
      [self = this->shared_from_this(), has_begun](Error read_error, size_t num_bytes) {
        if (read_error) return self->Close();
        self->buffer_.commit(num_bytes);
        if (!has_begun) {
          self->lowest().expires_after(Milliseconds(self->shared_->options.transfer_timeout));
        }
        self->ReadMore(true);
      });
}

template <class Stream>
void Connection<Stream>::Received(Error error) {
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
  WatchForClose();
  shared_->handler(exchange_);
}

// A client that hangs up ends its side of the stream. What it sends instead begins its next request; its
// going away will then show when we answer.
template <class Stream>
void Connection<Stream>::WatchForClose() {
  // Held by what waits, so that the connection lives while it is open and unanswered.
  if (buffer_.size() >= kAheadBytes) {
    return lowest().socket().async_wait(asio::ip::tcp::socket::wait_error,
                                        [self = this->shared_from_this()](Error error) {
                                          if (!error && self->exchange_ != nullptr) self->Close();
                                        });
  }
  reading_ahead_ = true;
  stream_.async_read_some(buffer_.prepare(kAheadBytes),
                          [self = this->shared_from_this()](Error error, size_t num_bytes) {
                            self->buffer_.commit(num_bytes);
                            self->reading_ahead_ = false;
                            self->has_ended_ |= error && error != asio::error::operation_aborted;
                            if (std::exchange(self->next_is_due_, false)) return self->Read();
                            if (self->exchange_ == nullptr) return;
                            error ? self->Close() : self->WatchForClose();
                          });
}

template <class Stream>
void Connection<Stream>::Write(HttpResponse response) {
  if (exchange_ == nullptr) return;
  exchange_.reset();
  Error ignored;
  lowest().socket().cancel(ignored);  // the wait for its close
  response_.emplace(static_cast<http::status>(response.status), version_);
  response_->set(http::field::content_type, response.content_type);
  response_->set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) response_->set(name, value);
  response_->body() = std::move(response.body);
  response_->keep_alive(keep_alive_);
  response_->prepare_payload();
  lowest().expires_after(Milliseconds(shared_->options.transfer_timeout));
  http::async_write(stream_, *response_, [self = this->shared_from_this()](Error error, size_t) {
    self->Sent(error, self->keep_alive_);
  });
}

template <class Stream>
void Connection<Stream>::Refuse(http::status status, const std::string& message) {
  response_.emplace(status, 11);
  response_->set(http::field::content_type, "text/plain");
  response_->body() = message + "\n";
  response_->keep_alive(false);
  response_->prepare_payload();
  lowest().expires_after(Milliseconds(shared_->options.transfer_timeout));
  http::async_write(stream_, *response_, [self = this->shared_from_this()](Error error, size_t) {
    return error || self->has_ended_ ? self->Close() : self->Linger();
  });
}

template <class Stream>
void Connection<Stream>::Sent(Error error, bool keep_alive) {
  if (error || !keep_alive) return Close();
  response_.reset();
  // Its cancellation may be told later than the end of our answer, and what it read comes first.
  next_is_due_ = reading_ahead_;
  if (!next_is_due_) Read();
}

// A client that still sends would lose the answer to a connection that is closed at once.
template <class Stream>
void Connection<Stream>::Linger() {
  Error ignored;
  lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.consume(buffer_.size());
  lowest().async_read_some(
      buffer_.prepare(kReadBytes), [self = this->shared_from_this()](Error error, size_t) {
        return error ? self->Close() : self->Linger();  // the timeout of the transfer ends it
      });
}

template <class Stream>
void Connection<Stream>::Close() {
  if (const std::shared_ptr<Exchange> exchange = std::move(exchange_)) exchange->Abandon();
  Error ignored;
  lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  lowest().close();
}

class BeastServer final : public HttpServer {
 public:
  BeastServer(const HttpServerOptions& options, HttpHandler handler)
      : shared_{.options = options,
                .handler = std::move(handler),
                .mailbox = std::make_shared<Mailbox>(&context_)} {}

  ~BeastServer() override {
    shared_.mailbox->Close();
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen() {
    if (!shared_.options.tls.empty()) {
      ASSIGN_OR_RETURN(tls_, MakeTlsContext(shared_.options.tls));
    }
    ASSIGN_OR_RETURN(const ServerAddress address, ParseServerAddress(shared_.options.address));
    if (!address.socket_path.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(shared_.options.address, ": the HTTP door needs host:port"));
    }
    const size_t colon = shared_.options.address.rfind(':');
    const std::string host = shared_.options.address.substr(0, colon);
    const std::string port = shared_.options.address.substr(colon + 1);
    Error error;
    asio::ip::tcp::resolver resolver(context_);
    const auto found = resolver.resolve(host, port, asio::ip::tcp::resolver::passive, error);
    if (error)
      return absl::InvalidArgumentError(absl::StrCat(shared_.options.address, ": ", error.message()));
    const asio::ip::tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::AlreadyExistsError(
          absl::StrCat("cannot listen at ", shared_.options.address, ": ", error.message()));
    }
    address_ = absl::StrCat(host, ":", acceptor_.local_endpoint().port());
    Accept();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "http");
      context_.run();
    });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  void Serve(asio::ip::tcp::socket socket) {
    if (tls_.has_value())
      return std::make_shared<Connection<TlsStream>>(&shared_, std::move(socket), *tls_)->Start();
    std::make_shared<Connection<PlainStream>>(&shared_, std::move(socket))->Start();
  }

  void Accept() {
    acceptor_.async_accept([this](Error error, asio::ip::tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error && shared_.num_connections < shared_.options.num_connections_max) {
        Serve(std::move(socket));
      }
      Accept();
    });
  }

  Shared shared_;  // connections, which the context holds, use it to their end
  std::optional<ssl::context> tls_;
  asio::io_context context_{1};
  asio::ip::tcp::acceptor acceptor_{context_};
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              HttpHandler handler) {
  auto server = std::make_unique<BeastServer>(options, std::move(handler));
  RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace warpsmith
