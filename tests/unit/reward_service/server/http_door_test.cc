#include "reward_service/server/http_door.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/http_client.h"
#include "tests/support/reception_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

nlohmann::json Request(const std::string& id, const std::string& source) {
  return {{"requestId", id},
          {"task", {{"id", "task"}, {"referenceSource", "class Model: pass"}}},
          {"candidate", {{"language", "CANDIDATE_LANGUAGE_CPP"}, {"answer", "```cpp\n" + source + "\n```"}}}};
}

// The door before a fake referee, served on a free port.
struct ServedHttpDoor : ReceptionFixture {
  explicit ServedHttpDoor(int queue_capacity = 256, const std::vector<TenantOptions>& tenants = {})
      : ReceptionFixture(queue_capacity, tenants) {
    auto started = HttpServer::Start(
        {}, [this](const std::shared_ptr<HttpExchange>& exchange) { door.Handle(exchange); });
    REQUIRE(started.ok());
    server = *std::move(started);
  }
  ~ServedHttpDoor() {
    grader->Drain(absl::ZeroDuration());
    server.reset();
  }

  HttpReply Post(const std::string& path, const nlohmann::json& body) {
    return HttpClient(server->address()).Post(path, body.dump());
  }
  HttpReply Get(const std::string& path) { return HttpClient(server->address()).Get(path); }

  HttpDoor door{reception.get(), {{"/", "<p>page</p>"}}};
  std::unique_ptr<HttpServer> server;
};

TEST_CASE("a posted request comes back as a grade in protobuf's JSON") {
  ServedHttpDoor served;
  const HttpReply reply = served.Post("/v1/grade", Request("r1", "int run;"));
  REQUIRE(reply.status == 200);
  const nlohmann::json grade = nlohmann::json::parse(reply.body);
  CHECK(grade["requestId"] == "r1");
  CHECK(grade["verdict"] == "VERDICT_CORRECT");
  CHECK(grade["reward"]["value"].get<double>() > 1);
}

TEST_CASE("the same request again gets the same bytes, other content under its id is refused") {
  ServedHttpDoor served;
  const HttpReply first = served.Post("/v1/grade", Request("r1", "int run;"));
  CHECK(served.Post("/v1/grade", Request("r1", "int run;")).body == first.body);
  CHECK(served.script.num_judged == 1);
  const HttpReply other = served.Post("/v1/grade", Request("r1", "int other;"));
  CHECK(other.status == 400);
  CHECK_THAT(other.body, Catch::Contains("was used for another request"));
}

TEST_CASE("a candidate for a device that the service lacks is refused, alone and among others") {
  ServedHttpDoor served;
  nlohmann::json request = Request("r1", "int run;");
  request["candidate"]["language"] = "CANDIDATE_LANGUAGE_CUDA";
  request["task"]["device"] = "DEVICE_CUDA";
  const HttpReply alone = served.Post("/v1/grade", request);
  CHECK(alone.status == 400);
  const nlohmann::json error = nlohmann::json::parse(alone.body)["error"];
  CHECK(error["status"] == "FAILED_PRECONDITION");
  CHECK_THAT(error["message"].get<std::string>(), Catch::Contains("task.device is CUDA"));
  const HttpReply list = served.Post("/v1/grades", {{"requests", {request, Request("r2", "int run;")}}});
  REQUIRE(list.status == 200);
  const nlohmann::json responses = nlohmann::json::parse(list.body)["responses"];
  CHECK(responses[0]["error"] == error);
  CHECK(responses[1]["grade"]["verdict"] == "VERDICT_CORRECT");
}

TEST_CASE("what is no request is told what is wrong with it") {
  ServedHttpDoor served;
  HttpClient client(served.server->address());
  for (const std::string body : {"", "nonsense", "[]", "{\"requestIdd\": \"x\"}", "{\"task\": 3}"}) {
    INFO(body);
    const HttpReply reply = client.Post("/v1/grade", body);
    CHECK(reply.status == 400);
    CHECK(nlohmann::json::parse(reply.body)["error"]["status"] == "INVALID_ARGUMENT");
  }
  nlohmann::json unknown = Request("r1", "int run;");
  unknown["formula"] = "unknown";
  CHECK(served.Post("/v1/grade", unknown).status == 400);
  CHECK(client.Get("/v1/grade").status == 404);
  CHECK(client.Get("/nothing").status == 404);
}

TEST_CASE("a full queue is 429 with Retry-After") {
  ServedHttpDoor served(0);
  const HttpReply reply = served.Post("/v1/grade", Request("r1", "int run;"));
  CHECK(reply.status == 429);
  CHECK_THAT(reply.headers, Catch::Contains("Retry-After: 1"));
  CHECK(nlohmann::json::parse(reply.body)["error"]["retryDelayMs"] == 200);
}

TEST_CASE("a list is answered in its order, refused requests included") {
  ServedHttpDoor served;
  nlohmann::json list = nlohmann::json::array();
  for (int i = 0; i < 20; ++i)
    list.push_back(Request("r" + std::to_string(i), "int run" + std::to_string(i) + ";"));
  list[7]["formula"] = "unknown";
  const HttpReply reply = served.Post("/v1/grades", {{"requests", list}});
  REQUIRE(reply.status == 200);
  const nlohmann::json responses = nlohmann::json::parse(reply.body)["responses"];
  REQUIRE(responses.size() == 20);
  CHECK(responses[6]["requestId"] == "r6");
  CHECK(responses[6]["grade"]["verdict"] == "VERDICT_CORRECT");
  CHECK(responses[7]["error"]["status"] == "INVALID_ARGUMENT");
  CHECK(served.Post("/v1/grades", {{"requests", nlohmann::json::array()}}).status == 400);
  CHECK(served.Post("/v1/grades", list).status == 400);
  const std::string whole = nlohmann::json{{"requests", list}}.dump();
  CHECK(HttpClient(served.server->address()).Post("/v1/grades", whole + std::string("\0x", 2)).status == 400);
}

TEST_CASE("bodies that nest deeply are refused, and the service lives on") {
  ServedHttpDoor served;
  HttpClient client(served.server->address());
  for (const size_t depth : {200, 1'000'000}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    CHECK(client.Post("/v1/grades", "{\"requests\":[" + deep + "]}").status == 400);
    CHECK(client.Post("/v1/grade", "{\"task\":" + deep + "}").status == 400);
  }
  CHECK(client.Get("/healthz").status == 200);
}

TEST_CASE("a client that hangs up frees its place in the queue") {
  ServedHttpDoor served(1);
  absl::Notification begun, go;
  served.script.judge = [&](const JudgeRequest&) {
    if (!begun.HasBeenNotified()) begun.Notify();
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  {
    HttpClient client(served.server->address());
    const std::string body = Request("r1", "int run;").dump();
    client.Send("POST /v1/grade HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    begun.WaitForNotification();
  }
  for (int attempt = 0; attempt < 1000 && served.grader->backlog().num_requests > 0; ++attempt) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  CHECK(served.grader->backlog().num_requests == 0);
  go.Notify();
  CHECK(served.Post("/v1/grade", Request("r2", "int other;")).status == 200);
}

TEST_CASE("capabilities and health are there to be asked for") {
  ServedHttpDoor served;
  HttpClient client(served.server->address());
  CHECK(nlohmann::json::parse(client.Get("/v1/capabilities").body)["defaultFormula"] == "warpsmith-v3");
  CHECK(client.Get("/healthz").body == "serving\n");
}

TEST_CASE("where tenants have tokens, a request without one is 401, and one with it is graded") {
  TemporaryDirectory directory;
  std::ofstream(directory.path() / "token") << "0123456789abcdef\n";
  ServedHttpDoor served(256, {{.name = "lab", .token_file = directory.path() / "token"}});
  const std::string body = Request("r1", "int run;").dump();
  const HttpReply refused = served.Post("/v1/grade", Request("r1", "int run;"));
  CHECK(refused.status == 401);
  CHECK_THAT(refused.body, Catch::Contains("authorization: Bearer TOKEN"));
  CHECK(served.Get("/metrics").status == 401);
  CHECK(served.Get("/v1/capabilities").status == 401);
  CHECK(served.Get("/v1/recent").status == 401);
  CHECK(served.Get("/healthz").status == 200);
  HttpClient client(served.server->address());
  client.Send(
      "POST /v1/grade HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer 0123456789abcdef\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  CHECK(client.Receive().status == 200);
  client.Send("GET /v1/capabilities HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n");
  CHECK(client.Receive().status == 200);
}

TEST_CASE("metrics count a repeated request once, and errors") {
  ServedHttpDoor served;
  served.Post("/v1/grade", Request("r1", "int run;"));
  served.Post("/v1/grade", Request("r1", "int run;"));
  const HttpReply metrics = served.Get("/metrics");
  CHECK_THAT(metrics.headers, Catch::Contains("text/plain; version=0.0.4"));
  CHECK_THAT(metrics.body, Catch::Contains("verdict=\"VERDICT_CORRECT\"} 1"));
}

}  // namespace
}  // namespace warpsmith
