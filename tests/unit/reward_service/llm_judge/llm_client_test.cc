#include "reward_service/llm_judge/llm_client.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/rpc/http_server.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

bool Never() { return false; }

// An endpoint that answers as the test says, or holds its exchanges.
struct Endpoint {
  HttpResponse response{.body = "{}"};
  bool holds = false;
  std::mutex mutex;
  std::vector<HttpRequest> requests;
  std::vector<std::shared_ptr<HttpExchange>> held;
  std::unique_ptr<HttpServer> server;

  Endpoint() {
    auto started = HttpServer::Start({}, [this](const std::shared_ptr<HttpExchange>& exchange) {
      std::lock_guard<std::mutex> lock(mutex);
      requests.push_back(exchange->request());
      if (holds) held.push_back(exchange);
      if (!holds) exchange->Respond(response);
    });
    REQUIRE(started.ok());
    server = *std::move(started);
  }
  std::string url() const { return "http://" + server->address() + "/v1"; }
};

absl::StatusOr<LlmHttpReply> Post(const Endpoint& endpoint, absl::Duration patience = absl::Seconds(10)) {
  const auto client =
      LlmClient::Create({.url = endpoint.url(), .api_key = "secret", .reply_bytes_max = 1000});
  REQUIRE(client.ok());
  return (*client)->Post("{\"a\": 1}", absl::Now() + patience, Never);
}

TEST_CASE("a body is posted with its key and the answer comes back") {
  Endpoint endpoint;
  endpoint.response = {.status = 429, .headers = {{"Retry-After", "7"}}, .body = "slowly"};
  const absl::StatusOr<LlmHttpReply> reply = Post(endpoint);
  REQUIRE(reply.ok());
  CHECK(reply->status == 429);
  CHECK(reply->body == "slowly");
  CHECK(reply->retry_after == absl::Seconds(7));
  REQUIRE(endpoint.requests.size() == 1);
  const HttpRequest& request = endpoint.requests[0];
  CHECK(request.method == "POST");
  CHECK(request.path == "/v1/chat/completions");
  CHECK(request.body == "{\"a\": 1}");
  CHECK(request.headers.at("authorization") == "Bearer secret");
  CHECK(request.headers.at("content-type") == "application/json");
}

TEST_CASE("a proxy of the environment is not used, and a redirect not followed") {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  setenv("all_proxy", "http://127.0.0.1:1", 1);
  Endpoint endpoint;
  endpoint.response = {.status = 302, .headers = {{"Location", "file:///etc/passwd"}}};
  const absl::StatusOr<LlmHttpReply> reply = Post(endpoint);
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  REQUIRE(reply.ok());
  CHECK(reply->status == 302);
  CHECK(endpoint.requests.size() == 1);
}

TEST_CASE("a reply over its limit, a late one and none at all are told apart") {
  Endpoint endpoint;
  endpoint.response.body = std::string(1001, 'x');
  CHECK(absl::IsResourceExhausted(Post(endpoint).status()));
  endpoint.response.body = std::string(1000, 'x');
  CHECK(Post(endpoint).ok());
  endpoint.holds = true;
  const absl::Time begin = absl::Now();
  CHECK(absl::IsDeadlineExceeded(Post(endpoint, absl::Milliseconds(200)).status()));
  CHECK(absl::IsDeadlineExceeded(Post(endpoint, absl::ZeroDuration()).status()));
  CHECK(absl::Now() - begin < absl::Seconds(5));
  endpoint.server.reset();
  const auto client = LlmClient::Create({.url = "http://127.0.0.1:1"});
  const absl::Status refused = (*client)->Post("", absl::Now() + absl::Seconds(5), Never).status();
  CHECK(absl::IsUnavailable(refused));
  CHECK_THAT(std::string(refused.message()), !Catch::Contains("127.0.0.1"));
}

TEST_CASE("a request that nobody wants any more ends soon") {
  Endpoint endpoint;
  endpoint.holds = true;
  const auto client = LlmClient::Create({.url = endpoint.url()});
  const absl::Time begin = absl::Now();
  const auto unwanted = [begin] { return absl::Now() > begin + absl::Milliseconds(100); };
  CHECK(absl::IsCancelled((*client)->Post("", begin + absl::Seconds(60), unwanted).status()));
  CHECK(absl::Now() - begin < absl::Seconds(20));
}

TEST_CASE("one connection serves one request after the other") {
  Endpoint endpoint;
  const auto client = LlmClient::Create({.url = endpoint.url() + "/chat/completions"});
  for (int i = 0; i < 3; ++i) CHECK((*client)->Post("{}", absl::Now() + absl::Seconds(10), Never).ok());
  CHECK(endpoint.requests.size() == 3);
  CHECK(endpoint.requests[2].path == "/v1/chat/completions");
  CHECK(endpoint.requests[2].headers.count("authorization") == 0);
}

TEST_CASE("several threads may post at once, each gets its own answer") {
  auto server = HttpServer::Start({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Respond({.body = "got " + exchange->request().body});
  });
  REQUIRE(server.ok());
  const auto client = LlmClient::Create({.url = "http://" + (*server)->address() + "/v1"});
  std::atomic<int> num_right{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10; ++i) {
        const std::string body = std::to_string(100 * thread + i);
        const auto reply = (*client)->Post(body, absl::Now() + absl::Seconds(30), Never);
        num_right += reply.ok() && reply->body == "got " + body;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_right == 40);
}

TEST_CASE("URLs and keys that cannot be meant are refused in words") {
  for (const char* url :
       {"", "host", "file:///etc/passwd", "ftp://host/v1", "gopher://host", "http://",
        "http://me:secret@host/v1", "http://host/v1?key=1", "http://host/v1#a", "http://ho st/"}) {
    INFO(url);
    CHECK(absl::IsInvalidArgument(LlmClient::Create({.url = url}).status()));
  }
  for (const char* url : {"http://0.0.0.0:8000/v1", "http://[::]:8000/v1"}) {
    const absl::Status refused = LlmClient::Create({.url = url}).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Contains("on all interfaces"));
  }
  CHECK(LlmClient::Create({.url = "https://host/v1", .api_key = "k"}).ok());
  CHECK(LlmClient::Create({.url = "http://localhost:8000/v1/", .api_key = "k"}).ok());
  CHECK(LlmClient::Create({.url = "http://host/v1"}).ok());
  CHECK(absl::IsInvalidArgument(LlmClient::Create({.url = "http://host/v1", .api_key = "k"}).status()));
  CHECK(absl::IsInvalidArgument(
      LlmClient::Create({.url = "https://host/v1", .api_key = "k\r\nX-Evil: 1"}).status()));
}

}  // namespace
}  // namespace warpsmith
