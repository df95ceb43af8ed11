#include "cli/task_file.h"

#include "cli/grade.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

struct TaskFile {
  explicit TaskFile(const std::string& text) {
    REQUIRE(WriteFileAtomically(directory.path() / "train.jsonl", text).ok());
  }
  absl::StatusOr<v1::Task> Read(const std::string& id) const {
    return ReadTaskLine({directory.path() / "train.jsonl", id}, v1::CANDIDATE_LANGUAGE_CPP);
  }
  std::string Error(const std::string& id) const { return std::string(Read(id).status().message()); }

  TemporaryDirectory directory;
};

const char kTwo[] =
    "{\"id\": \"relu_1\", \"family\": \"own\", \"reference_source\": \"class A: pass\", \"split\": 3}\n\n"
    "{\"id\": \"mean_2#x\", \"reference_source\": \"class B: pass\", \"allowed_libraries\": [\"blas\"]}\n";

TEST_CASE("An address is a task file and, behind the first #, an id") {
  CHECK_FALSE(ParseTaskAddress("relu.py").has_value());
  CHECK_FALSE(ParseTaskAddress("task.json").has_value());
  CHECK(ParseTaskAddress("a/train.jsonl")->id.empty());
  CHECK(ParseTaskAddress("a/train.jsonl#x")->path == "a/train.jsonl");
  CHECK(ParseTaskAddress("a#b/train.jsonl#x#y")->path == "a#b/train.jsonl");
  CHECK(ParseTaskAddress("a#b/train.jsonl#x#y")->id == "x#y");
}

TEST_CASE("A task is found by its id, with all that its line says") {
  const TaskFile file(kTwo);
  const v1::Task task = file.Read("mean_2#x").value();
  CHECK(task.id() == "mean_2#x");
  CHECK(task.skill() == v1::SKILL_GENERATE);
  CHECK(task.language() == v1::CANDIDATE_LANGUAGE_CPP);
  CHECK(task.reference_source() == "class B: pass");
  REQUIRE(task.allowed_libraries_size() == 1);
  CHECK(task.allowed_libraries(0) == "blas");
  CHECK(file.Read("relu_1")->family() == "own");
}

TEST_CASE("A byte order mark before the file or a line is passed over") {
  const TaskFile file(
      "\uFEFF{\"id\": \"a\", \"reference_source\": \"x\"}\n\uFEFF{\"id\": \"b\", \"reference_source\": "
      "\"y\"}\n");
  CHECK(file.Read("a")->reference_source() == "x");
  CHECK(file.Read("b")->reference_source() == "y");
}

TEST_CASE("A line may say its device, and one that is none is refused") {
  const auto line = [](const std::string& device) {
    return "{\"id\": \"a\", \"reference_source\": \"x\", \"device\": \"" + device + "\"}\n";
  };
  CHECK(TaskFile(line("cuda")).Read("a")->device() == v1::DEVICE_CUDA);
  CHECK(TaskFile(kTwo).Read("relu_1")->device() == v1::DEVICE_UNSPECIFIED);
  CHECK_THAT(TaskFile(line("gpu")).Error("a"),
             Catch::Contains("train.jsonl:1: the device \"gpu\" is not known: cpu or cuda"));
}

TEST_CASE("An id that is not there is told the nearest, and none at all some") {
  const TaskFile file(kTwo);
  CHECK(absl::IsNotFound(file.Read("relu_2").status()));
  CHECK_THAT(file.Error("relu_2"),
             Catch::Contains("none of its 2 tasks is \"relu_2\"; did you mean \"relu_1\"?"));
  CHECK_THAT(file.Error("something else"), Catch::Contains("the first is \"relu_1\""));
  CHECK_THAT(file.Error(""),
             Catch::Contains("name one of its 2 tasks, e.g.") && Catch::Contains("train.jsonl#relu_1"));
  CHECK_THAT(TaskFile("\n").Error("x"), Catch::Contains("holds no task"));
}

TEST_CASE("A line that is no task for this command is named with its number") {
  CHECK_THAT(TaskFile("{\"id\": \"a\"}\nnot json\n").Error("b"),
             Catch::Contains("train.jsonl:2: is no JSON"));
  CHECK_THAT(TaskFile("{\"id\": \"a\"}\n").Error("a"),
             Catch::Contains("train.jsonl:1: \"reference_source\""));
  CHECK_THAT(TaskFile("{\"id\": \"a\", \"skill\": \"optimise\"}\n").Error("a"),
             Catch::Contains("train.jsonl:1: a task of the skill \"optimise\""));
  CHECK_THAT(TaskFile("{\"id\": \"a\", \"language\": \"cuda\"}\n").Error("a"),
             Catch::Contains("train.jsonl:1: a task in \"cuda\"; give that as --language"));
}

TEST_CASE("warpsmith grade takes such a task") {
  const TaskFile file(kTwo);
  const std::filesystem::path candidate = file.directory.path() / "a.cc";
  REQUIRE(WriteFileAtomically(candidate, "int run;").ok());
  const auto request = MakeGradeRequest({.task = (file.directory.path() / "train.jsonl").string() + "#relu_1",
                                         .candidate = candidate,
                                         .language = "cpp"});
  REQUIRE(request.ok());
  CHECK(request->task().reference_source() == "class A: pass");
}

}  // namespace
}  // namespace warpsmith
