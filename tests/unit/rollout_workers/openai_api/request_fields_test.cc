#include "rollout_workers/openai_api/request_fields.h"

#include "tests/support/catch.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

TEST_CASE("fields are read by type and bounds; null is absent") {
  const Json object = Json::parse(R"({"b": true, "i": -3, "x": 0.5, "s": "t", "none": null})");
  RequestFields fields(&object);
  CHECK(fields.Bool("b") == true);
  CHECK(fields.Integer("i", -3, 3) == -3);
  CHECK(fields.Number("x", 0, 1) == 0.5);
  CHECK(fields.String("s") == "t");
  CHECK(fields.Bool("none") == std::nullopt);
  CHECK(fields.Integer("absent", 0, 1) == std::nullopt);
  CHECK(fields.Finish().ok());
}

TEST_CASE("the first fault is told with its field, value and bounds") {
  const Json object = Json::parse(R"({"i": 18446744073709551615, "x": "0.5"})");
  RequestFields fields(&object, "inner.");
  CHECK(fields.Integer("i", 0, 9) == std::nullopt);
  CHECK(fields.Number("x", 0, 1) == std::nullopt);
  CHECK(Message(fields.Finish()) == "inner.i is 18446744073709551615; give an integer from 0 to 9");
  for (const char* const text : {"1.0", "true", "10", "-1", "[1]", "{}"}) {
    const Json other = {{"i", Json::parse(text)}};
    RequestFields bad(&other);
    CHECK(bad.Integer("i", 0, 9) == std::nullopt);
    CHECK(absl::IsInvalidArgument(bad.Finish()));
  }
}

TEST_CASE("a field that nobody reads is refused by name, unless it is null") {
  const Json object = Json::parse(R"({"known": 1, "unset": null, "novel": {"a": 1}})");
  RequestFields fields(&object);
  fields.Ignore({"known"});
  CHECK_THAT(Message(fields.Finish()), Catch::StartsWith("novel is not known here"));
}

TEST_CASE("a field that is switched off is taken, another value of it is not") {
  const Json off = Json::parse(R"({"penalty": 0.0, "list": []})");
  RequestFields taken(&off);
  taken.Only("penalty", {0}, "why");
  taken.Only("list", {Json::array()}, "why");
  CHECK(taken.Finish().ok());
  const Json on = Json::parse(R"({"penalty": 0.5})");
  RequestFields refused(&on);
  refused.Only("penalty", {0}, "why not");
  CHECK(Message(refused.Finish()) == "penalty is 0.5: why not");
}

}  // namespace warpsmith::openai
