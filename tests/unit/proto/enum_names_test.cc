#include "proto/enum_names.h"

#include "tests/support/catch.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

TEST_CASE("names are without what all values of an enum begin with, whatever that is") {
  CHECK(EnumName(*v1::Advice_descriptor(), v1::ADVICE_AVOID_TEMPORARY) == "avoid_temporary");
  CHECK(EnumNames(*v1::Skill_descriptor()) == std::vector<std::string>{"generate", "optimise"});
  CHECK(EnumOfName(*v1::Skill_descriptor(), "optimise") == v1::SKILL_OPTIMISE);
  CHECK(AllEnumNames(*v1::Skill_descriptor()) == "generate or optimise");
}

TEST_CASE("a value that is none of the list has no name") {
  CHECK(EnumName(*v1::Skill_descriptor(), 99).empty());
  CHECK(EnumOfName(*v1::Skill_descriptor(), "unspecified") == 0);
}

}  // namespace warpsmith
