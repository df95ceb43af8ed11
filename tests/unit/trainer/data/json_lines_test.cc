#include "trainer/data/json_lines.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

absl::StatusOr<std::vector<JsonLine>> ReadText(const std::string& text) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "lines.jsonl";
  std::ofstream(path) << text;
  return ReadJsonLines(path);
}

}  // namespace

TEST_CASE("empty lines are skipped and numbers of lines kept") {
  const auto lines = ReadText("{\"a\": \"x\"}\n\n{\"a\": 1}\n");
  REQUIRE(lines.ok());
  REQUIRE(lines->size() == 2);
  CHECK(lines->at(0).Text("a").value() == "x");
  const std::string message(lines->at(1).Text("a").status().message());
  CHECK(message.find(":3: \"a\" must be a string") != std::string::npos);
}

TEST_CASE("a missing key takes its fallback, a list of other things is refused") {
  const auto lines = ReadText("{\"list\": [1], \"texts\": [\"x\"], \"nothing\": null}");
  REQUIRE(lines.ok());
  const JsonLine& line = lines->front();
  CHECK(line.TextOr("missing", "fallback") == "fallback");
  CHECK(line.TextsOr("texts", {}).value() == std::vector<std::string>{"x"});
  CHECK(absl::IsInvalidArgument(line.TextsOr("list", {}).status()));
  CHECK(line.Find("nothing") == nullptr);
  const auto others = ReadText("{\"text\": \"x\", \"object\": {\"key\": \"x\"}}");
  REQUIRE(others.ok());
  CHECK(absl::IsInvalidArgument(others->front().TextsOr("text", {}).status()));
  CHECK(absl::IsInvalidArgument(others->front().TextsOr("object", {}).status()));
}

TEST_CASE("broken JSON is refused with its line") {
  CHECK(absl::IsInvalidArgument(ReadText("{\"a\": \"x\"}\n{\"a\": ").status()));
  for (const std::string& behind : {std::string("x"), std::string("{}"), std::string("\0x", 2)}) {
    CHECK(absl::IsInvalidArgument(ReadText("{\"a\": \"x\"}" + behind).status()));
  }
}

TEST_CASE("a byte order mark before a file or a line is passed over") {
  const auto lines = ReadText("\uFEFF{\"a\": \"x\"}\n\uFEFF{\"a\": \"y\"}\n");
  REQUIRE(lines.ok());
  CHECK(lines->at(0).Text("a").value() == "x");
  CHECK(lines->at(1).Text("a").value() == "y");
}

}  // namespace warpsmith
