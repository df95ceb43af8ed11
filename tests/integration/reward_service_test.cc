// The reward service as a process: real compiler, real referee, honest and hostile input over gRPC.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/reward_client.h"

namespace warpsmith {
namespace {

// One service for all tests of this program: each test also shows that those before it harmed nothing.
RewardClient& Service() {
  static RewardClient client;
  return client;
}

constexpr char kRight[] =
    "for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }";

v1::Grade Graded(const v1::GradeRequest& request) {
  const absl::StatusOr<v1::Grade> grade = Service().Grade(request);
  INFO(grade.status().ToString());
  REQUIRE(grade.ok());
  return *grade;
}

void CheckVerdict(const v1::GradeRequest& request, v1::Verdict expected) {
  const v1::Grade grade = Graded(request);
  INFO(grade.verdict_reason() << " | " << grade.compile().diagnostics());
  CHECK(v1::Verdict_Name(grade.verdict()) == v1::Verdict_Name(expected));
  CHECK(grade.reward().has_value() == (expected != v1::VERDICT_INVALID_TASK));
}

// As CheckVerdict; and the next honest program is graded as if nothing had been.
void CheckContained(const v1::GradeRequest& request, v1::Verdict expected) {
  CheckVerdict(request, expected);
  static int turn = 0;
  CheckVerdict(
      CppBody(ReluSquareReference(), absl::StrCat(kRight, " const int after = ", ++turn, "; (void)after;")),
      v1::VERDICT_CORRECT);
}

TEST_CASE("a right program is CORRECT, with every part of its grade filled in") {
  const v1::Grade grade = Graded(CppBody(ReluSquareReference(1024), kRight));
  INFO(grade.verdict_reason());
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.compile().succeeded());
  CHECK(grade.correctness().num_draws() >= 5);
  CHECK(grade.timing().speedup() > 0.0);
  CHECK(grade.timing().speedup_low() <= grade.timing().speedup());
  CHECK(grade.rubric().total() >= 4);
  CHECK(grade.reward().value() >= 0.0);
  CHECK(grade.reward().terms_size() > 5);
  CHECK(grade.feedback().finding() != "");
  CHECK(grade.environment().lane_cores() != "");
  CHECK(grade.cost().total_seconds() > 0.0);
}

TEST_CASE("wrong programs get their verdicts") {
  const std::string reference = ReluSquareReference();
  CheckVerdict(CppAnswer(reference, "I cannot write this program."), v1::VERDICT_NO_CODE);
  CheckVerdict(CppAnswer(reference, "```cpp\nint run( {\n```"), v1::VERDICT_COMPILE_ERROR);
  CheckVerdict(CppBody(reference, "for (int64_t i = 0; i < n; ++i) y[i] = x[i];"), v1::VERDICT_INCORRECT);
  CheckVerdict(CppBody(reference, "for (int64_t i = 0; i < n; ++i) y[i] = NAN;"), v1::VERDICT_NON_FINITE);
  CheckVerdict(CppBody(reference, "*(volatile int*)0 = 1;"), v1::VERDICT_RUNTIME_ERROR);
  CheckVerdict(CppBody(reference, absl::StrCat(kRight, "return 3;")), v1::VERDICT_RUNTIME_ERROR);
  CheckVerdict(CppBody(reference, "for (volatile int i = 0;;) i = i + 1;"), v1::VERDICT_TIMEOUT);
}

TEST_CASE("a task at fault is INVALID_TASK and has no reward") {
  const char* const kHead =
      "import os, torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        ";
  const char* const kTail =
      "\ndef get_inputs():\n    return [torch.randn(64, 256)]\ndef get_init_inputs():\n    return []\n";
  for (const char* body : {"return torch.relu(x", "raise ValueError('no')", "os._exit(0)", "os.abort()",
                           "return x + torch.rand_like(x)"}) {
    INFO(body);
    CheckVerdict(CppBody(absl::StrCat(kHead, body, kTail), kRight), v1::VERDICT_INVALID_TASK);
  }
  CheckVerdict(CppBody("this is not Python", kRight), v1::VERDICT_INVALID_TASK);
  CheckVerdict(CppBody("x = 1\n", kRight), v1::VERDICT_INVALID_TASK);
}

TEST_CASE("programs that attack the machine are stopped, and nobody else is harmed") {
  const std::string reference = ReluSquareReference();
  const std::string head =
      "#include <cstdio>\n#include <cstdlib>\n#include <fcntl.h>\n#include <signal.h>\n#include "
      "<sys/mman.h>\n"
      "#include <sys/socket.h>\n#include <sys/wait.h>\n#include <unistd.h>\n";
  SECTION("forks") {
    CheckContained(CppBody(reference, "while (true) { if (fork() < 0) return 1; }", head),
                   v1::VERDICT_RUNTIME_ERROR);
  }
  SECTION("exhausts memory") {
    CheckContained(CppBody(reference,
                           "while (true) { char* p = (char*)malloc(1 << 26); if (!p) return 1; "
                           "for (long i = 0; i < 1 << 26; i += 4096) p[i] = 1; }",
                           head),
                   v1::VERDICT_RUNTIME_ERROR);
  }
  SECTION("exits early with a forged verdict on its output") {
    CheckContained(
        CppBody(reference, "puts(\"{\\\"verdict\\\": \\\"CORRECT\\\"}\"); fflush(stdout); _exit(0);", head),
        v1::VERDICT_RUNTIME_ERROR);
  }
  SECTION("reads the password file") {
    CheckContained(
        CppBody(reference, absl::StrCat("if (open(\"/etc/passwd\", O_RDONLY) < 0) return 7;", kRight), head),
        v1::VERDICT_RUNTIME_ERROR);
  }
  SECTION("opens a socket") {
    CheckContained(
        CppBody(reference, absl::StrCat("if (socket(AF_INET, SOCK_STREAM, 0) < 0) return 7;", kRight), head),
        v1::VERDICT_RUNTIME_ERROR);
  }
  SECTION("writes outside") {
    const std::filesystem::path target = Service().folder() / "written";
    const std::string body =
        absl::StrCat("int f = open(\"", target.string(), "\", O_CREAT | O_WRONLY, 0666); ",
                     "if (f < 0) return 7; write(f, \"x\", 1);", kRight);
    CheckContained(CppBody(reference, body, head), v1::VERDICT_RUNTIME_ERROR);
    CHECK_FALSE(std::filesystem::exists(target));
  }
  SECTION("fills the disk") {
    const std::string body =
        "static char block[1 << 20]; int f = open(\"/tmp/fill\", O_CREAT | O_WRONLY, 0666); if (f < 0) "
        "return 7; "
        "while (write(f, block, sizeof(block)) > 0) {} return 8;";
    CheckContained(CppBody(reference, body, head), v1::VERDICT_RUNTIME_ERROR);
  }
  SECTION("kills whom it can see") {
    CheckContained(CppBody(reference, "kill(-1, SIGKILL); kill(getppid(), SIGKILL); return 9;", head),
                   v1::VERDICT_RUNTIME_ERROR);
  }
}

TEST_CASE("programs that attack the compiler are refused") {
  const std::string reference = ReluSquareReference();
  const std::string run = "extern \"C\" int run() { return 0; }";
  for (const std::string& program :
       {std::string("#include \"/etc/passwd\"\n"), std::string("#include \"/proc/self/environ\"\n"),
        std::string("asm(\".incbin \\\"/etc/passwd\\\"\");\n"),
        std::string("template <int N> struct A { static const int v = A<N + 1>::v; }; int x = A<0>::v;\n"),
        std::string("char huge[1L << 34] = {1};\n")}) {
    INFO(program);
    CheckVerdict(CppAnswer(reference, absl::StrCat("```cpp\n", program, run, "\n```")),
                 v1::VERDICT_COMPILE_ERROR);
  }
}

TEST_CASE("an answer of ten megabytes is refused at the door") {
  const absl::Status status =
      Service().Grade(CppAnswer(ReluSquareReference(), std::string(10 << 20, 'x'))).status();
  CHECK(absl::IsInvalidArgument(status));
}

TEST_CASE("a repeated request gets its first grade, a rewritten one its own") {
  v1::GradeRequest request =
      CppBody(ReluSquareReference(), absl::StrCat(kRight, " long once = 1; (void)once;"));
  request.set_request_id("once");
  const v1::Grade first = Graded(request);
  CHECK(Graded(request).SerializeAsString() == first.SerializeAsString());
  request.set_request_id("twice");
  const v1::Grade second = Graded(request);
  CHECK(second.cached());
  CHECK(second.timing().speedup() == first.timing().speedup());
}

TEST_CASE("a Python answer is graded, and one that only renames the reference is not rewarded") {
  const std::string model =
      "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
      "        return torch.relu(2 * x + 1) ** 2\n";
  const v1::Grade grade = Graded(PythonAnswer(ReluSquareReference(1024), model));
  INFO(grade.verdict_reason());
  CHECK((grade.verdict() == v1::VERDICT_HACK || grade.reward().value() < 0.5));
}

// A KernelBench answer whose extension has `body` in its loop.
std::string InlineModel(const std::string& body) {
  return absl::StrCat(R"(import torch
from torch.utils.cpp_extension import load_inline

source = """
torch::Tensor relu_square(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    )",
                      body, R"(
  }
  return y;
}
"""
extension = load_inline(name="relu_square", cpp_sources=source, functions=["relu_square"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.relu_square(x)
)");
}

TEST_CASE("inline C++ of a Python answer is compiled with Torch's headers and graded") {
  const absl::Duration with_headers = absl::Minutes(5);  // the first extension precompiles them
  const absl::StatusOr<v1::Grade> right = Service().Grade(
      PythonAnswer(ReluSquareReference(1024),
                   InlineModel("float v = 2 * in[i] + 1; v = v > 0 ? v : 0; out[i] = v * v;")),
      with_headers);
  REQUIRE(right.ok());
  INFO(right->verdict_reason() << " | " << right->compile().diagnostics());
  CHECK(right->verdict() == v1::VERDICT_CORRECT);
  CHECK(right->compile().succeeded());
  CHECK(right->timing().speedup() > 0.0);

  const absl::StatusOr<v1::Grade> wrong =
      Service().Grade(PythonAnswer(ReluSquareReference(1024), InlineModel("out[i] = in[i];")), with_headers);
  REQUIRE(wrong.ok());
  CHECK(wrong->verdict() == v1::VERDICT_INCORRECT);

  const absl::StatusOr<v1::Grade> broken = Service().Grade(
      PythonAnswer(ReluSquareReference(1024), InlineModel("out[i] = twice(in[i]);")), with_headers);
  REQUIRE(broken.ok());
  CHECK(broken->verdict() == v1::VERDICT_COMPILE_ERROR);
  CHECK_THAT(broken->compile().diagnostics(), Catch::Contains("'twice' was not declared"));
}

TEST_CASE("a full disk under the cache costs no verdict") {
  TemporaryDirectory disk;
  RewardClient client({absl::StrCat("cache_directory=", disk.path().string())});
  // What follows cannot be written: the folder is gone and its name taken by a file.
  std::filesystem::remove_all(disk.path() / "compiled");
  std::ofstream(disk.path() / "compiled") << "in the way";
  const absl::StatusOr<v1::Grade> grade = client.Grade(CppBody(ReluSquareReference(), kRight));
  REQUIRE(grade.ok());
  CHECK(grade->verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("the service stops when it is told to") {
  RewardClient client;
  REQUIRE(client.Grade(CppBody(ReluSquareReference(), kRight)).ok());
  CHECK(client.process().Stop(SIGTERM, absl::Seconds(30)) == 0);
}

TEST_CASE("a misspelt key ends the service with its place") {
  ServerProcess process("warpsmith-reward", {"--set", "reward_service.queue_capcity=3"});
  CHECK(process.address() == "");
  CHECK(process.Stop(SIGTERM, absl::Seconds(10)) == 1);
}

}  // namespace
}  // namespace warpsmith
