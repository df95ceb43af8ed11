#include "core/config/config_section.h"

#include <filesystem>
#include <fstream>
#include <memory>

#include "core/config/yaml_text.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A section over YAML text, which it keeps alive.
struct TestSection {
  explicit TestSection(const std::string& text)
      : node(ParseYaml(text, "run.yaml").value()), section(&node, "trainer") {}
  std::string Error() const { return std::string(section.Finish().message()); }

  ConfigNode node;
  ConfigSection section;
};

}  // namespace

TEST_CASE("values of every type are read") {
  TestSection test(
      "i: -3\nn: 4\nd: 1e-3\nb: true\ns: text\nq: \"12\"\nl: [a, b]\nis: [1, 2]\nds: [1, 0.5]\n");
  int64_t i = 0;
  int n = 0;
  double d = 0;
  bool b = false;
  std::string s, q;
  std::vector<std::string> l;
  std::vector<int64_t> is;
  std::vector<double> ds;
  test.section.Read("i", &i);
  test.section.Read("n", &n);
  test.section.Read("d", &d);
  test.section.Read("b", &b);
  test.section.Read("s", &s);
  test.section.Read("q", &q);
  test.section.Read("l", &l);
  test.section.Read("is", &is);
  test.section.Read("ds", &ds);
  REQUIRE(test.section.Finish().ok());
  CHECK(i == -3);
  CHECK(n == 4);
  CHECK(d == 1e-3);
  CHECK(b);
  CHECK(s == "text");
  CHECK(q == "12");
  CHECK(l == std::vector<std::string>{"a", "b"});
  CHECK(is == std::vector<int64_t>{1, 2});
  CHECK(ds == std::vector<double>{1, 0.5});
}

TEST_CASE("what the file does not say keeps its default") {
  ConfigSection absent(nullptr, "trainer");
  int64_t steps = 7;
  std::vector<std::string> names = {"x"};
  absent.Read("num_steps", &steps);
  absent.Read("names", &names);
  CHECK(absent.Finish().ok());
  CHECK(steps == 7);
  CHECK(names == std::vector<std::string>{"x"});
  CHECK(absent.WrittenKeys().empty());
}

TEST_CASE("a value of the wrong type is an error with place, key and value, and keeps the default") {
  TestSection test("steps: 1.5\n");
  int64_t steps = 7;
  test.section.Read("steps", &steps);
  CHECK(test.Error() == "run.yaml:1:8: trainer.steps: must be an integer, but is 1.5");
  CHECK(steps == 7);
}

TEST_CASE("each type refuses the others") {
  TestSection test("a: \"1\"\nb: yes\nc: 2.11\nd: x\ne: [1]\nf: [1, x]\ng:\nh: {x: 1}\n");
  int64_t a = 0;
  bool b = false;
  std::string c, e, g, h;
  std::vector<std::string> d;
  std::vector<int64_t> f;
  test.section.Read("a", &a);
  test.section.Read("b", &b);
  test.section.Read("c", &c);
  test.section.Read("d", &d);
  test.section.Read("e", &e);
  test.section.Read("f", &f);
  test.section.Read("g", &g);
  test.section.Read("h", &h);
  const std::string error = test.Error();
  for (const char* key : {"trainer.a:", "trainer.b:", "trainer.c:", "trainer.d:", "trainer.e:", "trainer.f:",
                          "trainer.g:", "trainer.h:"}) {
    INFO(key);
    CHECK(error.find(key) != std::string::npos);
  }
  CHECK(error.find("run.yaml:6:8: trainer.f: holds x as element 1") != std::string::npos);
}

TEST_CASE("ranges hold at their ends") {
  TestSection test("low: 1\nhigh: 10\nunder: 0\nover: 11\nopen: 0\nclosed: 0\nbig: 3000000000\n");
  int64_t low = 0, high = 0, under = 5, over = 5;
  double open = 0.5, closed = 0.5;
  int big = 5;
  test.section.Read("low", &low, {.min = 1, .max = 10});
  test.section.Read("high", &high, {.min = 1, .max = 10});
  test.section.Read("under", &under, {.min = 1, .max = 10});
  test.section.Read("over", &over, {.min = 1, .max = 10});
  test.section.Read("open", &open, {.min = 0, .min_excluded = true});
  test.section.Read("closed", &closed, {.min = 0, .max = 1});
  test.section.Read("big", &big);
  CHECK(low == 1);
  CHECK(high == 10);
  CHECK(closed == 0);
  CHECK(under == 5);
  CHECK(over == 5);
  CHECK(open == 0.5);
  CHECK(big == 5);
  const std::string error = test.Error();
  CHECK(error.find("trainer.under: must be an integer from 1 to 10, but is 0") != std::string::npos);
  CHECK(error.find("trainer.over: must be an integer from 1 to 10, but is 11") != std::string::npos);
  CHECK(error.find("trainer.open: must be a number above 0, but is 0") != std::string::npos);
  CHECK(error.find("trainer.big") != std::string::npos);
}

TEST_CASE("a key that nobody reads is an error that names what was meant") {
  TestSection test("learning_rat: 1e-3\n");
  double rate = 0;
  test.section.Read("learning_rate", &rate);
  CHECK(test.Error() ==
        "run.yaml:1:1: trainer.learning_rat: is not a known key; did you mean \"learning_rate\"?");
}

TEST_CASE("keys of a section that another process owns are its to check") {
  TestSection test("tokenizer: 3\ntrain: x\n");
  std::string tokenizer;
  test.section.Read("tokenizer", &tokenizer);
  test.section.IgnoreOtherKeys();
  CHECK(test.Error() ==
        "run.yaml:1:12: trainer.tokenizer: must be text (in quotes if it looks like a number), but is 3");
}

TEST_CASE("a choice takes its words only") {
  TestSection test("a: layer\nb: layers\n");
  std::string a = "none", b = "none";
  test.section.ReadChoice("a", &a, {"none", "layer"});
  test.section.ReadChoice("b", &b, {"none", "layer"});
  CHECK(a == "layer");
  CHECK(b == "none");
  CHECK(test.Error() == "run.yaml:2:4: trainer.b: must be one of none, layer, but is layers");
}

TEST_CASE("errors of sections below come with the one above, all at once") {
  TestSection test("optimizer:\n  beta: x\n  betta: 1\nsteps: x\n");
  double beta = 0.9;
  int64_t steps = 1;
  test.section.Section("optimizer").Read("beta", &beta);
  test.section.Read("steps", &steps);
  const std::string error = test.Error();
  CHECK(error.find("trainer.optimizer.beta: must be a number") != std::string::npos);
  CHECK(error.find("trainer.optimizer.betta: is not a known key") != std::string::npos);
  CHECK(error.find("trainer.steps") != std::string::npos);
}

TEST_CASE("a section asked for twice is the same one, and a value in its place is an error") {
  TestSection test("a: 3\nb:\n");
  CHECK(&test.section.Section("a") == &test.section.Section("a"));
  test.section.Section("b");
  CHECK(test.Error() == "run.yaml:1:4: trainer.a: must be a section, but is 3");
}

TEST_CASE("a required key that is missing, and a complaint of the caller, are errors") {
  TestSection test("present: 1\n");
  int64_t present = 0, absent = 0;
  test.section.Read("present", &present);
  test.section.Read("absent", &absent);
  test.section.Require("present");
  test.section.Require("absent");
  test.section.AddError("present", "must be even");
  const std::string error = test.Error();
  CHECK(error.find("trainer.absent: is missing") != std::string::npos);
  CHECK(error.find("run.yaml:1:10: trainer.present: must be even") != std::string::npos);
  CHECK(error.find("trainer.present: is missing") == std::string::npos);
}

TEST_CASE("the keys a user chose are listed in their order") {
  TestSection test("zebra: 1\nant: 2\n");
  CHECK(test.section.WrittenKeys() == std::vector<std::string>{"zebra", "ant"});
}

TEST_CASE("a missing file is named with its place, its key and the way out") {
  TestSection test("train: nowhere/train.jsonl\nfolder: /proc/self\n");
  std::filesystem::path train, folder, absent = "nowhere/default";
  test.section.Read("train", &train);
  test.section.Read("folder", &folder);
  test.section.Read("absent", &absent);
  test.section.RequireFile("train", train, "; ./make makes it");
  test.section.RequireFile("folder", folder);
  test.section.RequireFile("absent", absent);
  const std::string here = std::filesystem::current_path().string();
  CHECK(test.Error() == "run.yaml:1:8: trainer.train: there is no file nowhere/train.jsonl in " + here +
                            "; ./make makes it\n"
                            "run.yaml:2:9: trainer.folder: /proc/self is a folder, not a file\n"
                            "configuration: trainer.absent: there is no file nowhere/default in " +
                            here);
}

TEST_CASE("a folder must hold the files that will be read, and an empty path asks for nothing") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "there.txt") << "x";
  ConfigSection section(nullptr, "data");
  section.RequireFolder("good", directory.path(), {"there.txt"});
  section.RequireFolder("empty", "", {"there.txt"});
  section.RequireFile("empty", "");
  section.RequireWritable("empty", "");
  CHECK(section.Finish().ok());
  section.RequireFolder("bad", directory.path(), {"there.txt", "absent.txt"});
  section.RequireFolder("file", directory.path() / "there.txt", {});
  CHECK(std::string(section.Finish().message()) ==
        "configuration: data.bad: there is no file " + (directory.path() / "absent.txt").string() +
            "\nconfiguration: data.file: " + (directory.path() / "there.txt").string() +
            " is a file, not a folder");
}

TEST_CASE("a folder that cannot be made is an error, one that can is none and is not made") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << "x";
  ConfigSection section(nullptr, "run");
  section.RequireWritable("directory", directory.path() / "new" / "run");
  CHECK(section.Finish().ok());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "new"));
  section.RequireWritable("directory", directory.path() / "file" / "run");
  const std::string error(section.Finish().message());
  CHECK(error.find("run.directory: " + (directory.path() / "file").string() + " is a file") !=
        std::string::npos);
}

TEST_CASE("the reference says of each key its default, what it may be, its unit and its meaning") {
  ConfigSection section(nullptr, "trainer");
  int64_t steps = 7;
  std::string name = "run", kind = "a";
  std::vector<int64_t> cores;
  std::filesystem::path folder = "runs";
  section.Read("num_steps", &steps, {.min = 1}, {"steps", "After which it ends."});
  section.Section("inner", "Within.").Read("name", &name, {"", "Of the run."});
  section.Section("inner").Read("cores", &cores);
  section.Section("inner").Read("folder", &folder);
  section.ReadChoice("kind", &kind, {"a", "b"}, {"", "Of two."});
  CHECK(section.Reference() ==
        "trainer.num_steps\t7\tan integer of at least 1\tsteps\tAfter which it ends.\n"
        "trainer.inner\t\ta section\t\tWithin.\n"
        "trainer.inner.name\t\"run\"\ttext (in quotes if it looks like a number)\t\tOf the run.\n"
        "trainer.inner.cores\t[]\ta list, each an integer\t\t\n"
        "trainer.inner.folder\t\"runs\"\ta path (in quotes if it looks like a number)\t\t\n"
        "trainer.kind\t\"a\"\tone of a, b\t\tOf two.\n");
}

}  // namespace warpsmith
