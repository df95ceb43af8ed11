#include "cli/grade.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

struct Files {
  TemporaryDirectory directory;

  std::filesystem::path Write(const std::string& name, const std::string& text) const {
    REQUIRE(WriteFileAtomically(directory.path() / name, text).ok());
    return directory.path() / name;
  }
};

TEST_CASE("A KernelBench file becomes a task of skill 1, a program a source") {
  const Files files;
  const absl::StatusOr<v1::GradeRequest> request =
      MakeGradeRequest({.task = files.Write("relu.py", "class Model: pass"),
                        .candidate = files.Write("relu.cc", "int run;"),
                        .language = "cpp",
                        .formula = "stitchcuda-v1"});
  REQUIRE(request.ok());
  CHECK(request->task().id() == "relu");
  CHECK(request->task().skill() == v1::SKILL_GENERATE);
  CHECK(request->task().reference_source() == "class Model: pass");
  CHECK(request->candidate().language() == v1::CANDIDATE_LANGUAGE_CPP);
  CHECK(request->candidate().source() == "int run;");
  CHECK(request->formula() == "stitchcuda-v1");
}

TEST_CASE("A byte order mark is no part of a task or a program") {
  const Files files;
  GradeOptions options{.task = files.Write("relu.py", "\uFEFFclass Model: pass"),
                       .candidate = files.Write("relu.cc", "\uFEFFint run;"),
                       .language = "cpp"};
  CHECK(MakeGradeRequest(options)->task().reference_source() == "class Model: pass");
  CHECK(MakeGradeRequest(options)->candidate().source() == "int run;");
  options.task = files.Write("task.json", "\uFEFF{\"id\": \"t\"}");
  CHECK(MakeGradeRequest(options)->task().id() == "t");
}

TEST_CASE("A Markdown file is a whole answer") {
  const Files files;
  const absl::StatusOr<v1::GradeRequest> request =
      MakeGradeRequest({.task = files.Write("a.py", ""),
                        .candidate = files.Write("a.md", "```\nx\n```"),
                        .language = "kernelbench_python"});
  REQUIRE(request.ok());
  CHECK(request->candidate().answer() == "```\nx\n```");
}

TEST_CASE("A program that is not UTF-8 is named") {
  const Files files;
  const absl::Status status = MakeGradeRequest({.task = files.Write("a.py", ""),
                                                .candidate = files.Write("latin.cc", "int caf\xe9;"),
                                                .language = "cpp"})
                                  .status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("latin.cc is not UTF-8"));
}

TEST_CASE("A JSON file is a Task, and one that is not says why") {
  const Files files;
  GradeOptions options{.task = files.Write("task.json", R"({"id": "t", "skill": "SKILL_OPTIMISE"})"),
                       .candidate = files.Write("a.cc", ""),
                       .language = "cpp"};
  REQUIRE(MakeGradeRequest(options).ok());
  CHECK(MakeGradeRequest(options)->task().skill() == v1::SKILL_OPTIMISE);
  options.task = files.Write("bad.json", R"({"identity": 1})");
  const absl::Status status = MakeGradeRequest(options).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("bad.json is no Task") && Catch::Contains("identity"));
}

TEST_CASE("A device on the command line is the task's, whatever its file says") {
  const Files files;
  GradeOptions options{.task = files.Write("task.json", R"({"id": "t", "device": "DEVICE_CUDA"})"),
                       .candidate = files.Write("a.py", ""),
                       .language = "kernelbench_python"};
  CHECK(MakeGradeRequest(options)->task().device() == v1::DEVICE_CUDA);
  options.device = "cpu";
  CHECK(MakeGradeRequest(options)->task().device() == v1::DEVICE_CPU);
  options.device = "tpu";
  const absl::Status unknown = MakeGradeRequest(options).status();
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK_THAT(std::string(unknown.message()), Catch::Contains("'tpu': use cpu or cuda"));
}

TEST_CASE("The request's id follows from its content alone") {
  const Files files;
  const GradeOptions options{
      .task = files.Write("a.py", "x"), .candidate = files.Write("a.cc", "1"), .language = "cpp"};
  const std::string id = MakeGradeRequest(options)->request_id();
  CHECK(MakeGradeRequest(options)->request_id() == id);
  files.Write("a.cc", "2");
  CHECK(MakeGradeRequest(options)->request_id() != id);
}

TEST_CASE("A missing file and an unknown language are errors that name them") {
  const Files files;
  const absl::Status missing =
      MakeGradeRequest({.task = "/nonexistent.py", .candidate = "/nonexistent.cc", .language = "cpp"})
          .status();
  CHECK(absl::IsNotFound(missing));
  const absl::Status unknown =
      MakeGradeRequest({.task = files.Write("a.py", ""), .language = "fortran"}).status();
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK_THAT(std::string(unknown.message()), Catch::Contains("'fortran'"));
}

}  // namespace
}  // namespace warpsmith
