#include "reward_service/program/neutral_text.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the same word gets the same new name, known words and the task's keep theirs") {
  NeutralNames names({"bias", "id_7"});
  CHECK(names.NameOf("give_five") == "id_1");
  CHECK(names.NameOf("bias") == "bias");
  CHECK(names.NameOf("for") == "for");
  CHECK(names.NameOf("id_7") == "id_2");  // else a writer could name another's variable
  CHECK(names.NameOf("give_five") == "id_1");
  CHECK(names.NameOf(std::string(100, 'x')) == "id_3");
}

TEST_CASE("signs come out as operators or apart, and unknown ones not at all") {
  NeutralNames names({"end"});
  NeutralText text(&names);
  for (const char* sign : {"<", "|"}) text.Sign(sign);
  text.Word("end");
  for (const char* sign : {"|", ">", "`", "\\", "$", "\"", "\x01", "<|", "+=", "->"}) text.Sign(sign);
  CHECK(text.Take() == "< | end | > +=->\n");
}

TEST_CASE("blocks are indented, empty lines vanish, depth is bounded") {
  NeutralNames names({});
  NeutralText text(&names);
  text.EndLine(1);
  text.Word("x");
  text.Sign("=");
  text.Block("int y;\n\n  z;\n");
  text.EndLine(1000);
  text.Word("y");
  CHECK(text.Take() ==
        "    x = \"\"\"\n        int y;\n          z;\n    \"\"\"\n" + std::string(48, ' ') + "y\n");
}

TEST_CASE("operators and numbers are as long as they can be") {
  CHECK(OperatorLength("<<<a") == 3);
  CHECK(OperatorLength("->x") == 2);
  CHECK(OperatorLength("+") == 1);
  CHECK(NumberLength("1e-5f;") == 5);
  CHECK(NumberLength("0xe-5") == 3);
  CHECK(NumberLength(".5)") == 2);
  CHECK(NumberLength(".x") == 0);
  CHECK(NumberLength("") == 0);
  CHECK(NumberLength("x1") == 0);
}

}  // namespace
}  // namespace warpsmith
