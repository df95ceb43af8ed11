#include "reward_service/service/http_door.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"
#include "tests/support/http_client.h"

namespace warpsmith {
namespace {

nlohmann::json Request(const std::string& id, const std::string& source) {
  return {{"requestId", id},
          {"task", {{"id", "task"}, {"referenceSource", "class Model: pass"}}},
          {"candidate", {{"language", "CANDIDATE_LANGUAGE_CPP"}, {"answer", "```cpp\n" + source + "\n```"}}}};
}

// The door before a grader whose referee does what the test says, served on a free port.
struct ServedHttpDoor {
  explicit ServedHttpDoor(int queue_capacity = 256) {
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    lanes.push_back(
        std::make_unique<JudgeStage>(JudgeStageOptions{}, std::make_unique<FakeReferee>(&script)));
    grader =
        std::make_unique<Grader>(GraderOptions{.queue_capacity = queue_capacity}, &compile, std::move(lanes));
    DoorOptions options{.environment_key = "machine"};
    options.capabilities.set_default_formula("warpsmith-v1");
    door = std::make_unique<HttpDoor>(options, grader.get());
    auto started = HttpServer::Start(
        {}, [this](const std::shared_ptr<HttpExchange>& exchange) { door->Handle(exchange); });
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

  static absl::StatusOr<CompiledProgram> CompileNothing(std::string_view, const std::atomic<bool>&) {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemfd("library", "bytes"));
    return program;
  }

  FakeRefereeScript script;
  CompileStage compile{"test compiler", 1 << 16, CompileNothing, nullptr};
  std::unique_ptr<Grader> grader;
  std::unique_ptr<HttpDoor> door;
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
  CHECK(nlohmann::json::parse(reply.body)["error"]["retryDelayMs"] == 1000);
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
}

TEST_CASE("a client that hangs up frees its place in the queue") {
  ServedHttpDoor served(1);
  absl::Notification begun, go;
  served.script.judge = [&](const JudgeRequest&) {
    if (!begun.HasBeenNotified()) begun.Notify();
    go.WaitForNotification();
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  {
    HttpClient client(served.server->address());
    const std::string body = Request("r1", "int run;").dump();
    client.Send("POST /v1/grade HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    begun.WaitForNotification();
  }
  for (int attempt = 0; attempt < 1000 && served.grader->num_waiting() > 0; ++attempt) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  CHECK(served.grader->num_waiting() == 0);
  go.Notify();
  CHECK(served.Post("/v1/grade", Request("r2", "int other;")).status == 200);
}

TEST_CASE("capabilities and health are there to be asked for") {
  ServedHttpDoor served;
  HttpClient client(served.server->address());
  CHECK(nlohmann::json::parse(client.Get("/v1/capabilities").body)["defaultFormula"] == "warpsmith-v1");
  CHECK(client.Get("/healthz").body == "serving\n");
}

TEST_CASE("errors have the status of their code") {
  CHECK(HttpStatusOf(absl::StatusCode::kOk) == 200);
  CHECK(HttpStatusOf(absl::StatusCode::kResourceExhausted) == 429);
  CHECK(HttpStatusOf(absl::StatusCode::kUnavailable) == 503);
  CHECK(HttpStatusOf(absl::StatusCode::kInternal) == 500);
  const HttpResponse response = ErrorResponse(BackPressureError("full", absl::Milliseconds(2500)));
  CHECK(response.headers == std::vector<std::pair<std::string, std::string>>{{"Retry-After", "2"}});
}

}  // namespace
}  // namespace warpsmith
