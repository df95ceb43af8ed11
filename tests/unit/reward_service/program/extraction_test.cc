#include "reward_service/program/extraction.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string Extract(const std::string& answer) {
  return std::string(ExtractProgram(answer).value_or("(nothing)"));
}

TEST_CASE("the last fenced block is the program") {
  CHECK(Extract("text\n```cpp\nfirst\n```\nmore\n```\nsecond\nline\n```\nend") == "second\nline\n");
}

TEST_CASE("a block inside the thinking part is not the program") {
  CHECK(Extract("<think>\n```cpp\ndraft\n```\n</think>\nno code here") == "(nothing)");
  CHECK(Extract("<think>\n```cpp\ndraft\n```\n</think>\n```cpp\nfinal\n```\n") == "final\n");
  CHECK(Extract("```cpp\ndraft\n```\n</think>\nonly the end mark is seen") == "(nothing)");
}

TEST_CASE("thinking that never ends leaves no program") {
  CHECK(Extract("<think>\n```cpp\ndraft\n```\n") == "(nothing)");
}

TEST_CASE("an answer without a block, or with an empty one, has no program") {
  CHECK(Extract("") == "(nothing)");
  CHECK(Extract("int run();") == "(nothing)");
  CHECK(Extract("```cpp\n```") == "(nothing)");
  CHECK(Extract("```cpp\n \n\t\n```") == "(nothing)");
  CHECK(Extract("```cpp\n\v\f\n```") == "(nothing)");
  CHECK(Extract("```\nfirst\n```\n```\n```\n") == "(nothing)");
}

TEST_CASE("a block that is not closed runs to the end") {
  CHECK(Extract("```cpp\nint x;\nint y;") == "int x;\nint y;");
}

TEST_CASE("a fence is closed by its own mark, at least as long") {
  CHECK(Extract("````\n```\ninner\n```\n````\n") == "```\ninner\n```\n");
  CHECK(Extract("~~~\n```\nx\n~~~\n") == "```\nx\n");
  CHECK(Extract("```\nx\n``` not bare\ny\n```\n") == "x\n``` not bare\ny\n");
}

TEST_CASE("inline code and deep indentation open no block") {
  CHECK(Extract("``` x ``` is inline") == "(nothing)");
  CHECK(Extract("    ```\n    code\n    ```\n") == "(nothing)");
}

TEST_CASE("ten megabytes of fences take one pass") {
  std::string answer;
  while (answer.size() < 10u << 20) answer += "```\n`\n";
  CHECK(ExtractProgram(answer).has_value());
}

}  // namespace
}  // namespace warpsmith
