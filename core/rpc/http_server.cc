#include "core/rpc/http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/http_connection.h"
#include "core/rpc/http_shared.h"
#include "core/rpc/http_tls.h"
#include "core/rpc/server_address.h"

namespace warpsmith {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using http_connection::Error;
using http_connection::HttpConnection;
using http_connection::PlainStream;
using http_connection::TlsStream;

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
      return NameAddressKey(absl::AlreadyExistsError(absl::StrCat(
                                "cannot listen at ", shared_.options.address, ": ", error.message())),
                            shared_.options.address_key);
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

  bool AwaitAnswered(absl::Duration timeout) override { return shared_.open_requests.AwaitNone(timeout); }

 private:
  void Serve(asio::ip::tcp::socket socket) {
    if (tls_.has_value())
      return std::make_shared<HttpConnection<TlsStream>>(&shared_, std::move(socket), *tls_)->Start();
    std::make_shared<HttpConnection<PlainStream>>(&shared_, std::move(socket))->Start();
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

  HttpShared shared_;  // connections, which the context holds, use it to their end
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
