#include "core/rpc/http_server.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/catch.h"
#include "tests/support/http_client.h"

namespace warpsmith {
namespace {

// Answers "METHOD PATH BODY" at once.
std::unique_ptr<HttpServer> Echo(HttpServerOptions options = {}) {
  auto server = HttpServer::Start(options, [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    std::string text = request.method + " " + request.path + " " + request.body;
    for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
    exchange->Respond(
        {.content_type = "text/plain", .headers = {{"X-Seen", request.headers.at("host")}}, .body = text});
  });
  REQUIRE(server.ok());
  return *std::move(server);
}

// Keeps exchanges for the test to answer.
struct Holding {
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpExchange>> exchanges;
  absl::Notification arrived;
  std::unique_ptr<HttpServer> server;

  explicit Holding(HttpServerOptions options = {}) {
    auto started = HttpServer::Start(options, [this](std::shared_ptr<HttpExchange> exchange) {
      std::lock_guard<std::mutex> lock(mutex);
      exchanges.push_back(std::move(exchange));
      if (exchanges.size() == 1) arrived.Notify();
    });
    REQUIRE(started.ok());
    server = *std::move(started);
  }
};

TEST_CASE("a request comes whole, its answer goes back, and the connection serves the next") {
  const auto server = Echo();
  HttpClient client(server->address());
  const HttpReply first = client.Post("/a%20b?x=1%2B1&y=a+b&z", "{\"key\": 1}");
  CHECK(first.status == 200);
  CHECK(first.body == "POST /a%20b {\"key\": 1} x=1+1 y=a b z=");
  CHECK_THAT(first.headers, Catch::Contains("X-Seen: test"));
  CHECK_THAT(first.headers, Catch::Contains("nosniff"));
  CHECK(client.Get("/next").body == "GET /next ");
}

TEST_CASE("requests that were sent together are answered in their order") {
  const auto server = Echo();
  HttpClient client(server->address());
  client.Send("GET /1 HTTP/1.1\r\nHost: t\r\n\r\nGET /2 HTTP/1.1\r\nHost: t\r\n\r\n");
  CHECK(client.Receive().body == "GET /1 ");
  CHECK(client.Receive().body == "GET /2 ");
}

TEST_CASE("a request may come byte by byte") {
  const auto server = Echo();
  HttpClient client(server->address());
  for (const char byte : std::string("POST /slow HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nok")) {
    client.Send({byte});
  }
  CHECK(client.Receive().body == "POST /slow ok");
}

TEST_CASE("a client that waits for 100 Continue is told to go on, once, or refused at once") {
  const auto server = Echo({.body_bytes_max = 10});
  HttpClient client(server->address());
  for (const char* const path : {"/1", "/2"}) {
    client.Send(std::string("POST ") + path +
                " HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    CHECK(client.Receive().status == 100);
    client.Send("ok");
    const HttpReply reply = client.Receive();
    CHECK(reply.status == 200);
    CHECK(reply.body == std::string("POST ") + path + " ok");
  }
  client.Send("POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  CHECK(client.Receive().status == 413);
}

TEST_CASE("answers may come late and from another thread") {
  Holding holding;
  HttpClient client(holding.server->address());
  client.Send("GET /late HTTP/1.1\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  std::thread answering([&] {
    holding.exchanges[0]->Respond({.status = 503, .body = "first"});
    holding.exchanges[0]->Respond({.status = 200, .body = "second"});
  });
  const HttpReply reply = client.Receive();
  answering.join();
  CHECK(reply.status == 503);
  CHECK(reply.body == "first");
}

TEST_CASE("a client that hangs up abandons its exchange, which can still be answered") {
  Holding holding;
  HttpClient client(holding.server->address());
  client.Send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  absl::Notification abandoned;
  holding.exchanges[0]->OnAbandoned([&] { abandoned.Notify(); });
  client.Close();
  REQUIRE(abandoned.WaitForNotificationWithTimeout(absl::Seconds(20)));
  holding.exchanges[0]->Respond({});
  absl::Notification again;
  holding.exchanges[0]->OnAbandoned([&] { again.Notify(); });
  CHECK(again.HasBeenNotified());
}

TEST_CASE("an answer in pieces goes out as they come, and the connection serves the next request") {
  Holding holding;
  HttpClient client(holding.server->address());
  client.Send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  HttpExchange& exchange = *holding.exchanges[0];
  exchange.BeginStream({.content_type = "text/event-stream", .body = "first"});
  const HttpReply head = client.Receive();
  CHECK(head.status == 200);
  CHECK_THAT(head.headers, Catch::Contains("text/event-stream"));
  CHECK(client.ReceiveChunk() == "first");
  exchange.SendPiece("");
  exchange.SendPiece("second\r\n0\r\n");
  CHECK(client.ReceiveChunk() == "second\r\n0\r\n");
  CHECK_FALSE(holding.server->AwaitAnswered(absl::ZeroDuration()));
  exchange.EndStream();
  exchange.SendPiece("too late");
  exchange.Respond({.body = "too late"});
  CHECK(client.ReceiveChunk().empty());
  CHECK(holding.server->AwaitAnswered(absl::Seconds(30)));
  client.Send("GET /next HTTP/1.1\r\nHost: t\r\n\r\n");
  const auto has_next = [&] {
    std::lock_guard<std::mutex> lock(holding.mutex);
    return holding.exchanges.size() == 2;
  };
  while (!has_next()) std::this_thread::yield();
  holding.exchanges[1]->Respond({.body = "next"});
  CHECK(client.Receive().body == "next");
}

TEST_CASE("to a client of HTTP/1.0 pieces go as they are, and the end of the connection ends them") {
  Holding holding;
  HttpClient client(holding.server->address());
  client.Send("GET / HTTP/1.0\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  holding.exchanges[0]->BeginStream({.body = "3\r\none"});
  holding.exchanges[0]->EndStream();
  const HttpReply head = client.Receive();
  CHECK(head.status == 200);
  CHECK_THAT(head.headers, !Catch::Contains("chunked"));
  CHECK(client.ReceiveChunk().empty());  // no end of a chunk: the text alone came
  CHECK(client.IsClosedWithin(absl::Seconds(30)));
}

TEST_CASE("a client that hangs up abandons a stream that has begun") {
  Holding holding;
  HttpClient client(holding.server->address());
  client.Send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  absl::Notification abandoned;
  holding.exchanges[0]->OnAbandoned([&] { abandoned.Notify(); });
  holding.exchanges[0]->BeginStream({.body = "first"});
  CHECK(client.Receive().status == 200);
  client.Close();
  CHECK(abandoned.WaitForNotificationWithTimeout(absl::Seconds(30)));
  holding.exchanges[0]->SendPiece("nobody hears");
  holding.exchanges[0]->EndStream();
  CHECK(holding.server->AwaitAnswered(absl::Seconds(30)));
}

TEST_CASE("a client that takes nothing of a stream is cut off at its limit") {
  Holding holding({.unsent_bytes_max = 100'000});
  HttpClient client(holding.server->address());
  client.Send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  absl::Notification abandoned;
  holding.exchanges[0]->OnAbandoned([&] { abandoned.Notify(); });
  holding.exchanges[0]->BeginStream({});
  // The system's own buffers take some MB.
  for (int i = 0; i < 10'000 && !abandoned.HasBeenNotified(); ++i) {
    holding.exchanges[0]->SendPiece(std::string(50'000, 'x'));
  }
  CHECK(abandoned.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_CASE("what no handler sees is refused in the server's own words") {
  const auto server = Echo({.body_bytes_max = 10, .refusal = [](int status, const std::string& reason) {
                              return HttpResponse{.body = std::to_string(status) + ": " + reason};
                            }});
  const HttpReply reply = HttpClient(server->address()).Post("/", std::string(11, 'x'));
  CHECK(reply.status == 413);
  CHECK(reply.body == "413: a body may have 10 bytes");
  CHECK_THAT(reply.headers, Catch::Contains("application/json"));
}

TEST_CASE("exchanges outlive their server") {
  std::shared_ptr<HttpExchange> exchange;
  {
    Holding holding;
    HttpClient client(holding.server->address());
    client.Send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    holding.arrived.WaitForNotification();
    exchange = holding.exchanges[0];
  }
  exchange->Respond({.body = "nobody hears"});
}

TEST_CASE("bodies and headers over their limits, and what is no HTTP, are refused or cut off") {
  const auto server = Echo({.body_bytes_max = 1000, .header_bytes_max = 1000});
  CHECK(HttpClient(server->address()).Post("/", std::string(1000, 'x')).status == 200);
  const HttpReply body = HttpClient(server->address()).Post("/", std::string(1001, 'x'));
  CHECK(body.status == 413);
  CHECK(body.body == "a body may have 1000 bytes\n");
  CHECK(HttpClient(server->address()).Get("/" + std::string(2000, 'x')).status == 431);
  HttpClient noise(server->address());
  noise.Send("\x16\x03\x01 what is this\r\n\r\n");
  CHECK(noise.Receive().status == 400);
  HttpClient endless(server->address());
  endless.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000000000\r\n\r\n");
  CHECK(endless.Receive().status == 413);
  HttpClient chunked(server->address());
  chunked.Send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
               std::string(2000, 'x') + "\r\n");
  CHECK(chunked.Receive().status == 413);
}

TEST_CASE("what comes piece by piece has the same limits") {
  const auto server = Echo({.body_bytes_max = 1000, .header_bytes_max = 1000});
  const auto status_of = [&](const std::string& begin, const std::string& piece) {
    HttpClient client(server->address());
    client.Send(begin);
    for (int i = 0; i < 400; ++i) {
      client.Send(piece);
      if (i < 10) absl::SleepFor(absl::Milliseconds(1));
    }
    client.Send("\r\n");
    return client.Receive().status;
  };
  const std::string chunked = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(status_of("GET / HTTP/1.1\r\nHost: t\r\n", "X-Field: " + std::string(100, 'x') + "\r\n") == 431);
  CHECK(status_of(chunked, "1\r\nx\r\n") == 413);
  CHECK(status_of(chunked + "1;name=", "more and more") == 413);
  CHECK(status_of(chunked + "0\r\n", "X-Trailer: x\r\n") == 413);
}

TEST_CASE("more requests than are read ahead are answered in their order") {
  const auto server = Echo();
  HttpClient client(server->address());
  std::string requests;
  for (int i = 0; i < 500; ++i) requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: t\r\n\r\n";
  client.Send(requests);
  for (int i = 0; i < 500; ++i) REQUIRE(client.Receive().body == "GET /" + std::to_string(i) + " ");
}

TEST_CASE("a client that has said all is answered or not, and the connection ends at once") {
  const auto server = Echo();
  for (const std::string more : {"", "GET", "GET /2 HTTP/1.1\r\nHost: t\r\n\r\n"}) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      HttpClient client(server->address());
      client.Send("GET /1 HTTP/1.1\r\nHost: t\r\n\r\n" + more);
      client.EndSending();
      while (client.Receive().status == 200) {
      }
      CHECK(client.IsClosedWithin(absl::Seconds(10)));
    }
  }
}

TEST_CASE("a client that sends or reads too slowly is cut off, and harms nobody else") {
  const auto server =
      Echo({.transfer_timeout = absl::Milliseconds(300), .idle_timeout = absl::Milliseconds(300)});
  HttpClient slow(server->address()), silent(server->address());
  slow.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nabc");
  CHECK(HttpClient(server->address()).Get("/").status == 200);
  CHECK(slow.IsClosedWithin(absl::Seconds(20)));
  CHECK(silent.IsClosedWithin(absl::Seconds(20)));
}

TEST_CASE("more connections than are allowed are closed at once") {
  Holding holding({.num_connections_max = 1});
  HttpClient first(holding.server->address());
  first.Send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
  holding.arrived.WaitForNotification();
  HttpClient second(holding.server->address());
  CHECK(second.IsClosedWithin(absl::Seconds(20)));
  holding.exchanges[0]->Respond({.body = "served"});
  CHECK(first.Receive().body == "served");
}

TEST_CASE("addresses in use, of no machine or of a socket file are refused in words") {
  const auto server = Echo();
  const auto start = [](const std::string& address) {
    return HttpServer::Start({.address = address, .address_key = "section.http"},
                             [](const std::shared_ptr<HttpExchange>&) {})
        .status();
  };
  const absl::Status in_use = start(server->address());
  CHECK(absl::IsAlreadyExists(in_use));
  CHECK_THAT(std::string(in_use.message()),
             Catch::Contains(server->address()) && Catch::EndsWith("; choose another by section.http"));
  CHECK(absl::IsInvalidArgument(start("unix:/tmp/socket")));
  CHECK(absl::IsInvalidArgument(start("nonsense")));
}

}  // namespace
}  // namespace warpsmith
