#include "reward_service/jail/fields.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

struct Run {
  static constexpr char op[] = "run";
  static constexpr IntegerField slot{"slot", 0, 9, -1};
  static constexpr TextField word{"word", 4};
};

TEST_CASE("a message is made of its name and its fields") {
  const nlohmann::json fields = Make<Run>({{Run::slot, 3}, {Run::word, "ready"}});
  CHECK(fields.dump() == R"({"op":"run","slot":3,"word":"ready"})");
  CHECK(Make<Run>().dump() == R"({"op":"run"})");
  CHECK(Make<Run>({{Run::slot, 3}}).dump() == R"({"op":"run","slot":3})");
}

TEST_CASE("a message is known by its name alone, whatever else it holds") {
  CHECK(Is<Run>(Make<Run>()));
  for (const char* text :
       {R"({"op":"ran"})", R"({"op":"run\u0000"})", R"({"op":["run"]})", R"({"slot":1})", "{}"})
    CHECK_FALSE(Is<Run>(nlohmann::json::parse(text)));
}

TEST_CASE("fields within their bounds are read, and texts are cut") {
  const nlohmann::json fields = Make<Run>({{Run::slot, 9}, {Run::word, "ready"}});
  CHECK(Read(fields, Run::slot) == 9);
  CHECK(Read(fields, Run::word) == "read");
  CHECK(Read({{"x", 0.25}}, NumberField{"x", 0, 1, 0.5}) == 0.25);
  CHECK(Read({{"yes", true}}, BooleanField{"yes"}));
  CHECK(Find({{"list", {1, 2}}}, ListField{"list", 2}) != nullptr);
  CHECK(Read({{"n", 5}}, Trusted<int>{"n"}) == 5);
}

TEST_CASE("fields of the wrong kind or range give the default") {
  const nlohmann::json fields = {
      {"text", 3}, {"n", "3"}, {"big", 1e300}, {"huge", 18446744073709551615u}, {"ok", 5}, {"list", {1, 2}}};
  CHECK(Read(fields, TextField{"text", 9}).empty());
  CHECK(Read(fields, TextField{"absent", 9}).empty());
  CHECK(Read(fields, IntegerField{"n", 0, 9, -1}) == -1);
  CHECK(Read(fields, IntegerField{"huge", 0, INT64_MAX, -1}) == -1);
  CHECK(Read(fields, IntegerField{"ok", 0, 4, -1}) == -1);
  CHECK(Read(fields, IntegerField{"ok", 6, 9, -1}) == -1);
  CHECK(Read(fields, NumberField{"big", 0, 1, 0.5}) == 0.5);
  CHECK_FALSE(Read(fields, BooleanField{"ok"}));
  CHECK(Find(fields, ListField{"list", 1}) == nullptr);
  CHECK(Find(fields, ListField{"ok", 9}) == nullptr);
  CHECK(Find(fields, AnyField{"absent"}) == nullptr);
}

}  // namespace
}  // namespace warpsmith
