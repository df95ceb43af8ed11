#include "reward_service/server/page_door.h"

#include <nlohmann/json.hpp>

#include "absl/synchronization/notification.h"
#include "tests/support/reception_fixture.h"

namespace warpsmith {
namespace {

// An exchange without a connection.
class FakeExchange final : public HttpExchange {
 public:
  explicit FakeExchange(HttpRequest request) : request_(std::move(request)) {}
  const HttpRequest& request() const override { return request_; }
  void Respond(HttpResponse response) override { response_ = std::move(response); }
  void BeginStream(HttpResponse /*head*/) override {}
  void SendPiece(std::string /*piece*/) override {}
  void EndStream() override {}
  void OnAbandoned(std::function<void()>) override {}
  const HttpResponse& response() const { return response_; }

 private:
  const HttpRequest request_;
  HttpResponse response_;
};

struct Page : ReceptionFixture {
  void Grade(const std::string& id, const std::string& source) {
    absl::Notification graded;
    reception->Submit(*reception->Identify({}), NativeRequest(id, source),
                      [&](const absl::StatusOr<v1::Grade>&) { graded.Notify(); });
    graded.WaitForNotification();
  }

  HttpResponse Get(const std::string& path, std::map<std::string, std::string> query = {}) {
    const auto exchange =
        std::make_shared<FakeExchange>(HttpRequest{"GET", path, std::move(query), {}, "", ""});
    const bool handled = door.HandleFile(exchange) || door.HandleData(**reception->Identify({}), exchange);
    return handled ? exchange->response() : HttpResponse{.status = 0};
  }

  PageDoor door{reception.get(), {{"/", "<p>page</p>"}, {"/page.js", "go()"}}};
};

TEST_CASE("the page's files run no script but their own") {
  Page page;
  const HttpResponse index = page.Get("/");
  CHECK(index.body == "<p>page</p>");
  CHECK(index.content_type == "text/html; charset=utf-8");
  CHECK(index.headers[0].first == "Content-Security-Policy");
  CHECK_THAT(index.headers[0].second, Catch::Contains("script-src 'self';"));
  CHECK(page.Get("/page.js").content_type == "text/javascript; charset=utf-8");
  CHECK(page.Get("/other").status == 0);
}

TEST_CASE("the list, one grade and the status tell what was graded") {
  Page page;
  page.Grade("r1", "int first;");
  page.Grade("r2", "int second; // </script>");
  const nlohmann::json list = nlohmann::json::parse(page.Get("/v1/recent").body)["grades"];
  REQUIRE(list.size() == 2);
  CHECK(list[0]["requestId"] == "r2");
  CHECK(list[0]["verdict"] == "VERDICT_CORRECT");
  const nlohmann::json one = nlohmann::json::parse(page.Get("/v1/recent/2").body);
  CHECK(one["grade"]["source"] == "int second; // </script>\n");
  CHECK(one["request"]["task"]["referenceSource"] == "class Model: pass");
  CHECK(nlohmann::json::parse(page.Get("/v1/status").body)["verdicts"]["VERDICT_CORRECT"] == 2);
}

TEST_CASE("a filter that is none is told so, a grade that is not there is 404") {
  Page page;
  CHECK(page.Get("/v1/recent", {{"verdict", "GOOD"}}).status == 400);
  CHECK(page.Get("/v1/recent", {{"reward_min", "much"}}).status == 400);
  CHECK(page.Get("/v1/recent", {{"num", "nan"}}).status == 400);
  CHECK(page.Get("/v1/recent", {{"before", "-NaN"}}).status == 400);
  CHECK(page.Get("/v1/recent", {{"reward_min", ""}, {"num", "1e300"}, {"before", "-5"}}).status == 200);
  for (const std::string sequence : {"1", "", "x", "99999999999999999999"}) {
    CHECK(page.Get("/v1/recent/" + sequence).status == 404);
  }
}

}  // namespace
}  // namespace warpsmith
