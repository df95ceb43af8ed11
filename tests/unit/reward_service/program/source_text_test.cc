#include "reward_service/program/source_text.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("comments, line ends and spacing do not change a C++ program's normal form") {
  const std::string plain = "int f(int a){return a+1;}";
  CHECK(NormaliseCpp("int f( int a )\n{\n  // add one\n  return a /* the input */ + 1;\n}\n") ==
        NormaliseCpp(plain));
  CHECK(NormaliseCpp("int  f(int a) { return a + \\\n 1; } // tail") == NormaliseCpp(plain));
}

TEST_CASE("tokens that would melt together keep their space") {
  CHECK(NormaliseCpp("int a; return b;") == "int a;return b;");
  CHECK(NormaliseCpp("a + +b") != NormaliseCpp("a ++b"));
  CHECK(NormaliseCpp("x = 0x1e +1") != NormaliseCpp("x = 0x1e+1"));
  CHECK(NormaliseCpp("a > > b") != NormaliseCpp("a >> b"));
  CHECK(NormaliseCpp("a [ [ x") != NormaliseCpp("a [[ x"));
  CHECK(NormaliseCpp("1 .5") != NormaliseCpp("1.5"));
  CHECK(NormaliseCpp("R \"(a)\"") != NormaliseCpp("R\"(a)\""));
}

TEST_CASE("preprocessor lines keep their ends") {
  CHECK(NormaliseCpp("#include <a>\n#define X  1 // one\nint y;\nint z;\n") ==
        "#include <a>\n#define X 1\nint y;int z;");
  CHECK(NormaliseCpp("#define F (x)\n") != NormaliseCpp("#define F(x)\n"));
  CHECK(NormaliseCpp("int x;\n  #  pragma omp simd\nfor(;;);") == "int x;\n# pragma omp simd\nfor(;;);");
}

TEST_CASE("literals are untouched") {
  CHECK(NormaliseCpp("s = \"a // b  /* c */\";") == "s= \"a // b  /* c */\";");
  CHECK(NormaliseCpp("s = \"\\\"//\"; // x") == "s= \"\\\"//\";");
  CHECK(NormaliseCpp("R\"x(  // kept )\" )x\"; // gone") == "R\"x(  // kept )\" )x\";");
  CHECK(NormaliseCpp("char c = '\"'; // x") == "char c= '\"';");
  CHECK(NormaliseCpp("int n = 1'000; // x") == "int n=1'000;");
}

TEST_CASE(
    "normalising, a delimiter over the language's 16 characters opens no raw literal, and costs no product "
    "of lengths") {
  const std::string longest(16, 'x');
  CHECK(NormaliseCpp("R\"" + longest + "( // )\" )" + longest + "\"; // gone") ==
        "R\"" + longest + "( // )\" )" + longest + "\";");
  CHECK(NormaliseCpp("R\"x" + longest + "( // kept\"; // gone") == "R\"x" + longest + "( // kept\";");
  const std::string half(1 << 19, ')');
  CHECK(NormaliseCpp("R\"" + half + "(" + half).size() == 2 * half.size() + 3);
}

TEST_CASE("what does not lex is kept to its end") {
  CHECK(NormaliseCpp("int a; /* open") == "int a;");
  CHECK(NormaliseCpp("s = \"open") != "");
  CHECK(NormaliseCpp("R\"(open") == "R\"(open");
  CHECK(NormaliseCpp("\\") == "\\");
}

TEST_CASE("Python keeps indentation and strings, and loses comments and empty lines") {
  CHECK(NormalisePython("def f(x):  # doubles\n\n    return '#' + x   \n# end\n") ==
        "def f(x):\n    return '#' + x\n");
  CHECK(NormalisePython("s = '''a # b\n  c'''\n") == "s = '''a # b\n  c'''\n");
  CHECK(NormalisePython("if x:\n  y\n") != NormalisePython("if x:\n    y\n"));
}

}  // namespace
}  // namespace warpsmith
