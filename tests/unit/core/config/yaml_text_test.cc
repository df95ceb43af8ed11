#include "core/config/yaml_text.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Kind = ConfigNode::Kind;

// The message of the error that `text` must give.
std::string ErrorOf(const std::string& text) {
  const auto node = ParseYaml(text, "run.yaml");
  REQUIRE(absl::IsInvalidArgument(node.status()));
  return std::string(node.status().message());
}

}  // namespace

TEST_CASE("an empty text, or one of comments, is a null node") {
  CHECK(ParseYaml("", "x").value().kind == Kind::kNull);
  CHECK(ParseYaml("# nothing here\n", "x").value().kind == Kind::kNull);
}

TEST_CASE("a tree keeps order, quotes and places, which count from one") {
  const ConfigNode root = ParseYaml("b: 1\na:\n  list: [x, 'y']\n  none:\n", "run.yaml").value();
  REQUIRE(root.children.size() == 2);
  CHECK(root.children[0].key == "b");
  CHECK(root.children[0].kind == Kind::kPlain);
  CHECK(root.children[0].key_place == "run.yaml:1:1");
  CHECK(root.children[0].place == "run.yaml:1:4");
  const ConfigNode* list = root.Find("a")->Find("list");
  REQUIRE(list != nullptr);
  CHECK(list->children[0].kind == Kind::kPlain);
  CHECK(list->children[1].kind == Kind::kQuoted);
  CHECK(list->children[1].place == "run.yaml:3:13");
  CHECK(root.Find("a")->Find("none")->kind == Kind::kNull);
  CHECK(root.Find("a")->Find("absent") == nullptr);
}

TEST_CASE("a key given twice is refused with both places") {
  CHECK(ErrorOf("a:\n  x: 1\n  y: 2\n  x: 3\n") ==
        "run.yaml:4:3: the key \"x\" was given before, at run.yaml:2:3");
}

TEST_CASE("the same key in two sections is fine") { CHECK(ParseYaml("a: {x: 1}\nb: {x: 1}\n", "n").ok()); }

TEST_CASE("aliases, anchors, merge keys and tags are refused") {
  CHECK(ErrorOf("a: &one 1\nb: 2\n").find("run.yaml:1:4: anchors") == 0);
  CHECK(ErrorOf("a: &one {x: 1}\nb: *one\n").find("anchors") != std::string::npos);
  CHECK(ErrorOf("a:\n  <<: {x: 1}\n").find("run.yaml:2:3: merge keys") == 0);
  CHECK(ErrorOf("a: !!int 3\n").find("tags") != std::string::npos);
}

TEST_CASE("an unknown alias, broken syntax and odd keys are refused with their place") {
  CHECK(ErrorOf("a: *nothing\n").find("run.yaml:1:4") == 0);
  CHECK(ErrorOf("a: [1, 2\nb: 3\n").find("run.yaml:") == 0);
  CHECK(ErrorOf("a: 1\n\tb: 2\n").find("run.yaml:2:") == 0);
  CHECK(ErrorOf("? [a, b]\n: 1\n").find("a key must be a name") != std::string::npos);
  CHECK(ErrorOf("~: 1\n").find("a key must be a name") != std::string::npos);
}

TEST_CASE("a second document is refused") {
  CHECK(ErrorOf("a: 1\n---\nb: 2\n").find("more than one YAML document") != std::string::npos);
}

TEST_CASE("nesting without end is an error, not a crash") {
  CHECK(ErrorOf(std::string(100000, '[')).find("run.yaml") == 0);
  CHECK(ErrorOf(std::string(100000, '{')).find("run.yaml") == 0);
}

TEST_CASE("formatted YAML reads back to the same tree") {
  const std::string text =
      "run:\n  name: \"two words: # not a comment\"\n  empty: \"\"\n  number_like: \"12\"\n"
      "  unicode: \"\xc3\xa9 \xf0\x9f\x98\x80\\n\\t\"\n  list: [\"a\", 1]\n  none: []\nmodel: {}\n";
  const ConfigNode first = ParseYaml(text, "x").value();
  const std::string formatted = FormatYaml(first);
  const ConfigNode second = ParseYaml(formatted, "x").value();
  CHECK(FormatYaml(second) == formatted);
  const ConfigNode* run = second.Find("run");
  REQUIRE(run != nullptr);
  CHECK(run->Find("name")->text == "two words: # not a comment");
  CHECK(run->Find("number_like")->kind == Kind::kQuoted);
  CHECK(run->Find("unicode")->text == "\xc3\xa9 \xf0\x9f\x98\x80\n\t");
  CHECK(run->Find("list")->children.size() == 2);
  CHECK(second.Find("model")->kind == Kind::kMapping);
}

TEST_CASE("plain scalars stay plain and quoted ones quoted, whatever they look like") {
  for (const std::string text :
       {"true", "false", "-5", "1e-3", "0.25", "word", "y", "no", "a_b/c.d", "0x1f"}) {
    INFO(text);
    CHECK(FormatYaml(ParseYaml("k: " + text, "x").value()) == "k: " + text + "\n");
    const ConfigNode again =
        ParseYaml(FormatYaml(ParseYaml("k: \"" + text + "\"", "x").value()), "x").value();
    CHECK(again.Find("k")->kind == Kind::kQuoted);
  }
}

}  // namespace warpsmith
