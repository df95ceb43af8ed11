#include "reward_service/server/json_text.h"

#include "tests/support/catch.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {
namespace {

TEST_CASE("a message survives its JSON, and fields at their default are spelt out") {
  v1::GradeRequest request;
  request.set_request_id("r1 \"quoted\"");
  request.mutable_candidate()->set_answer("line\nline");
  v1::GradeRequest again;
  REQUIRE(ParseJson(ToJson(request), &again).ok());
  CHECK(again.SerializeAsString() == request.SerializeAsString());
  CHECK_THAT(ToJson(request), Catch::Contains("\"formula\":\"\""));
}

TEST_CASE("bytes behind the value are refused, also behind a NUL byte, with which the parser would end") {
  v1::GradeRequest request;
  const std::string value = "{\"candidate\": {\"language\": \"cpp\"}}";
  CHECK(ParseJson(value, &request).ok());
  CHECK(ParseJson(value + " \n", &request).ok());
  for (const std::string& behind :
       {std::string("x"), std::string("{}"), std::string("\0", 1), std::string("\0{}", 3)}) {
    CHECK(absl::IsInvalidArgument(ParseJson(value + behind, &request)));
  }
}

TEST_CASE("what is no such message is refused in words") {
  v1::GradeRequest request;
  for (const std::string text :
       {"", "{", "[]", "{\"unknown\": 1}", "{\"task\": 3}", "{\"request_id\": {}}"}) {
    INFO(text);
    const absl::Status status = ParseJson(text, &request);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("is not a GradeRequest in JSON"));
  }
}

}  // namespace
}  // namespace warpsmith
