#include "reward_service/program/source_text.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "core/base/file.h"
#include "core/base/log.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// Tokens of `text` as the compiler's preprocessor leaves them, with one space wherever two would be one without
// it, and its exit code.
std::string Preprocessed(const std::string& text, const std::filesystem::path& folder) {
  REQUIRE(WriteFileAtomically(folder / "program.cc", text).ok());
  const std::string command = "g++ -std=c++17 -E -P " + (folder / "program.cc").string() + " -o " +
                              (folder / "tokens").string() + " 2> /dev/null";
  const int status = std::system(command.c_str());
  if (status != 0) return "refused";
  const std::string output = *ReadFile(folder / "tokens");
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || (c & 0x80) != 0 ||
           std::strchr("_$.\\\"'", c) != nullptr;
  };
  std::string tokens;
  bool gap = false;
  for (const char c : output) {
    if (c == ' ' || c == '\n') {
      gap = true;
      continue;
    }
    if (gap && !tokens.empty()) {
      const bool separator =
          std::strchr("(){};,", c) != nullptr || std::strchr("(){};,", tokens.back()) != nullptr;
      if (!separator && (is_word(c) == is_word(tokens.back()) || c == '"' || c == '\'')) tokens += ' ';
    }
    gap = false;
    tokens += c;
  }
  return tokens;
}

TEST_CASE("the normal form of a program is that program to the compiler") {
  const char* const kParts[] = {"a",
                                "b1",
                                "1",
                                "0xA'B",
                                "1e",
                                "+",
                                "-",
                                ".5",
                                "<",
                                ":",
                                "%:",
                                "#",
                                "\n",
                                "\n",
                                " ",
                                "\t",
                                "\\\n",
                                "\\ \n",
                                "\r\n",
                                "/",
                                "//",
                                "/*",
                                "*/",
                                "*",
                                "\"",
                                "\"x\"",
                                "'",
                                "'\"'",
                                "R\"(",
                                ")\"",
                                "u8R\"x(",
                                ")x\"",
                                "$",
                                "\\",
                                "(",
                                ")",
                                "#define A 1\n",
                                "#define S(x) #x\n",
                                "S(",
                                "A",
                                "__LINE__",
                                "#if 0\n",
                                "#endif\n",
                                "R",
                                "u8",
                                ";",
                                ",",
                                "\r"};
  constexpr size_t kNumParts = sizeof(kParts) / sizeof(kParts[0]);
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const TemporaryDirectory folder;
  constexpr int kNumChanged = 50;
  int num_changed = 0;
  for (int i = 0; i < 5000 && num_changed < kNumChanged; ++i) {
    std::string source;
    for (size_t n = 1 + random() % 24; n > 0; --n) source += kParts[random() % kNumParts];
    const std::string normal = NormaliseCpp(source);
    if (normal == source) continue;
    ++num_changed;
    INFO(Escape(source, 1000) << "\n" << Escape(normal, 1000));
    CHECK(Preprocessed(source, folder.path()) == Preprocessed(normal, folder.path()));
  }
  CHECK(num_changed == kNumChanged);
}

TEST_CASE("lines that end in a backslash are joined as the compiler joins them") {
  CHECK(NormaliseCpp("in\\\nt x; // a \\\n b\nint y;") == "int x;int y;");
  CHECK(NormaliseCpp("/\\\n/ gone \nint y;") == "int y;");
  CHECK(NormaliseCpp("a\\\r\nb") == "ab");
  // GCC takes the second line for a part of the comment, others do not.
  const std::string blank = "// a \\ \nint y;\n";
  CHECK(NormaliseCpp(blank) == blank);
  const std::string behind = "\\// gone\n#define A 1\n";
  CHECK(NormaliseCpp(behind) == behind);
  const std::string raw = "R\"(a\\\nb)\" // kept";
  CHECK(NormaliseCpp(raw) == raw);
}

TEST_CASE("a text that may hang on its layout is its own normal form") {
  for (const std::string text : {"static_assert(__LINE__ == 1); // x", "#define S(x) #x\nS(a  b) // x",
                                 "#define J(a, b) a ## b\nJ(__LI, NE__) // x",
                                 "#if __has_include(<a//b>)\n#endif // x", "__STRING(a  b) // x"}) {
    CHECK(NormaliseCpp(text) == text);
  }
}

TEST_CASE("what looks like a comment, a literal or a line to others does not to the compiler") {
  CHECK(NormaliseCpp("#include <a//b.h> // x\n") == "#include <a//b.h>");
  CHECK(NormaliseCpp("0xA'B; char c = '\"'; s = \"//\"; // x") == "0xA'B;char c= '\"';s= \"//\";");
  CHECK(NormaliseCpp("$R\"(\"; // x\n") == "$R\"(\";");
  CHECK(NormaliseCpp("a $b") != NormaliseCpp("a$b"));
  CHECK(NormaliseCpp("a \\u0062") != NormaliseCpp("a\\u0062"));
  CHECK(NormaliseCpp("int x;\n%:define A 1\nint y;") != NormaliseCpp("int x;\n%:define A 1 int y;"));
  CHECK(NormaliseCpp("int\rx;") != NormaliseCpp("int x;"));
}

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
  CHECK(NormaliseCpp("int a; /* open") == "int a; /* open");
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
