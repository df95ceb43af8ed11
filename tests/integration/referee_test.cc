// Candidates of every outcome before a real referee, oracle and jail.
#include "reward_service/measure/referee.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/referee_fixture.h"

namespace warpsmith {
namespace {

const char* const kFused =
    "for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }";

TEST_CASE("a right native candidate is correct on at least five draws, timed and profiled") {
  const v1::Measurement j =
      JudgeNative(TestTask("scaled_relu_square"), CandidateBody(kFused), /*verify_only=*/false);
  const v1::Grade& grade = j.grade();
  INFO(grade.verdict_reason());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.correctness().num_draws() >= 5);
  CHECK(grade.correctness().num_wrong() == 0);
  REQUIRE(grade.has_timing());
  const v1::Timing& timing = grade.timing();
  CHECK(timing.candidate().num_instances() >= 3);
  CHECK(timing.speedup() > 0);
  CHECK(timing.speedup_low() <= timing.speedup());
  CHECK(timing.speedup() <= timing.speedup_high());
  REQUIRE(grade.has_profile());
  const v1::Profile& profile = grade.profile();
  if (TestReferee().facts().profile) CHECK(profile.own_code_share() > 0.05);
  const double bytes_per_call = profile.gigabytes_per_second() * 1e3 * timing.candidate().median_us();
  CHECK(bytes_per_call == Approx(2 * 256 * 1024 * 4));
  CHECK(j.advice_facts().num_lane_cores() == 1);
  WARN(timing.ShortDebugString() << "; " << profile.ShortDebugString() << "; "
                                 << grade.cost().ShortDebugString());
}

TEST_CASE("the eager reference runs on the processor's vector kernels") {
  const std::string& capability = TestReferee().facts().torch_cpu_capability;
  CHECK(capability != "");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) CHECK(capability != "DEFAULT");
#endif
}

TEST_CASE("the host is measured when the referee starts, and again when it is asked") {
  REQUIRE(TestReferee().Calibrate().ok());
  const RefereeFacts& facts = TestReferee().facts();
  CHECK(facts.empty_call_us > 0);
  CHECK(facts.gigabytes_per_second_ceiling > 0);
  CHECK(facts.nearest_cache_gigabytes_per_second > 0);
  // A sample's cost is the difference of two spans: on a busy host noise may hide it once, not each time.
  for (int again = 0; facts.profile && facts.sample_us == 0 && again < 3; ++again) {
    REQUIRE(TestReferee().Calibrate().ok());
  }
  if (facts.profile) CHECK(facts.sample_us > 0);
  WARN("empty call " << facts.empty_call_us << " us, sample " << facts.sample_us << " us, copying "
                     << facts.gigabytes_per_second_ceiling << " GB/s, nearest cache "
                     << facts.nearest_cache_gigabytes_per_second << " GB/s");
}

TEST_CASE("parameters, numbers and several outputs reach a native candidate in order") {
  const std::string source = CandidateBody(R"(
    const float* w1 = (const float*)parameters[0]->data; const float* b1 = (const float*)parameters[1]->data;
    const float* w2 = (const float*)parameters[2]->data; const float* b2 = (const float*)parameters[3]->data;
    double scale = *(const double*)inputs[1]->data;
    int64_t* best = (int64_t*)outputs[1]->data;
    for (int r = 0; r < 64; ++r) {
      float h[48]; int at = 0;
      for (int j = 0; j < 48; ++j) {
        float s = b1[j];
        for (int k = 0; k < 32; ++k) s += w1[j * 32 + k] * x[r * 32 + k];
        h[j] = s > 0 ? s : 0;
        if (h[j] > h[at]) at = j;
      }
      best[r] = at;
      for (int j = 0; j < 32; ++j) {
        float s = b2[j];
        for (int k = 0; k < 48; ++k) s += w2[j * 48 + k] * h[k];
        y[r * 32 + j] = s * (float)scale;
      }
    })");
  const v1::Measurement j = JudgeNative(TestTask("small_network"), source);
  INFO(j.grade().verdict_reason());
  CHECK(j.grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("outputs are compared at their own scale: zeros and a missing maximum fail on softmax") {
  const v1::Measurement zeros =
      JudgeNative(TestTask("softmax_rows"), CandidateBody("std::memset(y, 0, n * 4);"));
  INFO(zeros.grade().verdict_reason());
  CHECK(zeros.grade().verdict() == v1::VERDICT_INCORRECT);
  const v1::Measurement mean = JudgeNative(
      TestTask("softmax_rows"), CandidateBody("for (int64_t i = 0; i < n; ++i) y[i] = 1.0f / 1024;"));
  CHECK(mean.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("an element that is never written is wrong") {
  const v1::Measurement j = JudgeNative(
      TestTask("scaled_relu_square"), CandidateBody("n -= 1; for (int64_t i = 0; i < n; ++i) { float v = 2 * "
                                                    "x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }"));
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK(j.grade().correctness().num_wrong() == 1);
  CHECK(j.grade().verdict_reason().find("[255, 1023]") != std::string::npos);
}

TEST_CASE("NaN where the reference has none is NON_FINITE") {
  const v1::Measurement j =
      JudgeNative(TestTask("scaled_relu_square"),
                  CandidateBody("for (int64_t i = 0; i < n; ++i) y[i] = std::sqrt(-1.0f - x[i] * x[i]);"));
  CHECK(j.grade().verdict() == v1::VERDICT_NON_FINITE);
}

TEST_CASE("a result other than zero, a missing entry point and a missing symbol are runtime errors") {
  CHECK(JudgeNative(TestTask("scaled_relu_square"), CandidateBody("return 3;")).grade().verdict_reason() ==
        "run() returned 3");
  const v1::Measurement none =
      JudgeNative(TestTask("scaled_relu_square"), "extern \"C\" int walk() { return 0; }");
  CHECK(none.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(none.grade().verdict_reason().find("no function `run`") != std::string::npos);
  const v1::Measurement missing = JudgeNative(
      TestTask("scaled_relu_square"), CandidateBody("return absent();", "extern \"C\" int absent();"));
  CHECK(missing.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("a Python candidate without extensions is judged, with shape and dtype") {
  const std::string head =
      "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        ";
  const TaskSource task = TestTask("scaled_relu_square");
  const v1::Measurement right =
      JudgePython(task, head + "return torch.relu(x * 2 + 1).square()\n", /*verify_only=*/false);
  INFO(right.grade().verdict_reason());
  REQUIRE(right.grade().verdict() == v1::VERDICT_CORRECT);
  REQUIRE(right.grade().has_timing());
  CHECK(right.grade().profile().own_code_share() < 0.05);
  CHECK(JudgePython(task, head + "return (torch.relu(x * 2 + 1) ** 2)[:, :8]\n").grade().verdict() ==
        v1::VERDICT_WRONG_SHAPE);
  CHECK(JudgePython(task, head + "return (torch.relu(x * 2 + 1) ** 2).double()\n").grade().verdict() ==
        v1::VERDICT_WRONG_DTYPE);
  CHECK(JudgePython(task, head + "return (torch.relu(x.t() * 2 + 1) ** 2).t()\n").grade().verdict() ==
        v1::VERDICT_CORRECT);
  CHECK(JudgePython(task, head + "raise ValueError('no')\n").grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython(task, head + "x.mul_(2)\n        return torch.relu(x + 1) ** 2\n")
            .advice_facts()
            .input_mutated());
}

// The only child of this program that is a referee.
pid_t FindReferee() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto stat = ReadFile(entry.path() / "stat");
    if (!stat.ok() || stat->find("(warpsmith-refer") == std::string::npos) continue;
    std::istringstream after(stat->substr(stat->find(')') + 2));
    std::string state;
    pid_t parent = 0;
    after >> state >> parent;
    if (parent == getpid()) return std::atoi(entry.path().filename().c_str());
  }
  return -1;
}

TEST_CASE("an output that is a view where the reference writes one is a hack") {
  const auto judge = [](const std::string& forward, const std::string& reference) {
    JudgeRequest request;
    request.kind = CandidateKind::kKernelBenchPython;
    request.verify_only = true;
    request.with_torch = true;
    const auto program = [](const std::string& name, const std::string& body) {
      return "import torch\nclass " + name +
             "(torch.nn.Module):\n    def forward(self, x):\n        return " + body + "\n";
    };
    request.task.reference_source = program("Model", reference) +
                                    "def get_inputs():\n    return [torch.randn(64, 96)]\n" +
                                    "def get_init_inputs():\n    return []\n";
    request.task.key = reference;
    request.source = program("ModelNew", forward);
    return *TestReferee().Judge(request, absl::Now() + absl::Minutes(2));
  };
  const v1::Measurement view = judge("x.t()", "torch.cat([x]).t().clone()");
  CHECK(view.grade().verdict() == v1::VERDICT_HACK);
  CHECK(view.grade().hack_family() == "unmaterialised-output");
  CHECK(view.grade().verdict_reason() == "output 0 is a view of an input; the reference's is not");
  CHECK(judge("x.t().clone()", "torch.cat([x]).t().clone()").grade().verdict() == v1::VERDICT_CORRECT);
  const std::string mean = "x.mean(1, keepdim=True)";
  CHECK(judge(mean + ".expand(64, 96)", mean + ".repeat(1, 96)").grade().verdict() == v1::VERDICT_HACK);
  CHECK(judge(mean + ".repeat(1, 96)", mean + ".repeat(1, 96)").grade().verdict() == v1::VERDICT_CORRECT);
  // The reference's own laxness is the candidate's, too.
  CHECK(judge(mean + ".expand(64, 96)", mean + ".expand(64, 96)").grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a referee that is killed costs at most one answer and leaves nobody behind") {
  const UniqueFd library = CompileCandidate(CandidateBody(kFused));
  JudgeRequest request;
  request.task = TestTask("scaled_relu_square");
  request.library_fd = library.get();
  const auto judge = [&] { return TestReferee().Judge(request, absl::Now() + absl::Seconds(60)); };
  REQUIRE(judge().ok());
  const pid_t referee = FindReferee();
  REQUIRE(referee > 0);
  REQUIRE(kill(referee, SIGKILL) == 0);
  // Lost where the referee's death shows only now; otherwise another referee has judged it.
  const absl::StatusOr<v1::Measurement> first = judge();
  INFO(first.status());
  if (first.ok()) CHECK(first->grade().verdict() == v1::VERDICT_CORRECT);
  if (!first.ok()) CHECK(absl::IsUnavailable(first.status()));
  const absl::StatusOr<v1::Measurement> next = judge();
  REQUIRE(next.ok());
  CHECK(next->grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(FindReferee() != referee);
}

TEST_CASE("a deadline that passes is infrastructure, not a verdict") {
  JudgeRequest request;
  request.task = MakeTask(
      "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * x\n"
      "def get_inputs():\n    while True: pass\ndef get_init_inputs():\n    return []\n");
  const UniqueFd library = CompileCandidate(CandidateBody(kFused));
  request.library_fd = library.get();
  const auto judgement = TestReferee().Judge(request, absl::Now() + absl::Milliseconds(300));
  CHECK(judgement.status().code() == absl::StatusCode::kDeadlineExceeded);
}

TEST_CASE("load_inline is recorded, not compiled") {
  const std::string source = R"(
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="twice", cpp_sources="torch::Tensor twice(torch::Tensor x);",
                  functions=["twice"], extra_cflags=["-O3"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.twice(x)
)";
  const auto records =
      TestReferee().RecordExtensions(TestTask("scaled_relu_square"), source, absl::Now() + absl::Seconds(30));
  REQUIRE(records.ok());
  REQUIRE(records->size() == 1);
  CHECK((*records)[0].name == "twice");
  CHECK((*records)[0].functions == std::vector<std::string>{"twice"});
  CHECK((*records)[0].extra_cflags == std::vector<std::string>{"-O3"});
  const auto broken = TestReferee().RecordExtensions(
      TestTask("scaled_relu_square"), "raise RuntimeError('x')", absl::Now() + absl::Seconds(30));
  CHECK(broken.status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("an extension that is built at the first call is recorded too") {
  const std::string source = R"(
import torch
from torch.utils.cpp_extension import load_inline
class ModelNew(torch.nn.Module):
    def forward(self, x):
        ext = load_inline(name="twice", cpp_sources="torch::Tensor twice(torch::Tensor x);", functions=["twice"])
        return ext.twice(x)
)";
  const auto records =
      TestReferee().RecordExtensions(TestTask("scaled_relu_square"), source, absl::Now() + absl::Seconds(30));
  REQUIRE(records.ok());
  REQUIRE(records->size() == 1);
  CHECK((*records)[0].name == "twice");
  // A call that fails without asking for one is for verification to judge.
  const std::string failing =
      "import torch\n# load_inline\nclass ModelNew(torch.nn.Module):\n"
      "    def forward(self, x):\n        raise ValueError('x')\n";
  const auto none = TestReferee().RecordExtensions(TestTask("scaled_relu_square"), failing,
                                                   absl::Now() + absl::Seconds(30));
  REQUIRE(none.ok());
  CHECK(none->empty());
}

const char* const kSmallNetworkHead =
    "import torch, torch.nn as nn\nimport torch.nn.functional as F\n"
    "class ModelNew(nn.Module):\n    def __init__(self, *a):\n        super().__init__()\n";

TEST_CASE("parameters under other names are set by their shape") {
  const TaskSource task = MakeTask(
      "import torch\nfrom torch import nn\n"
      "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
      "        self.linear = nn.Linear(64, 32)\n"
      "    def forward(self, x):\n        return torch.relu(self.linear(x))\n"
      "def get_inputs():\n    return [torch.randn(16, 64)]\ndef get_init_inputs():\n    return []\n");
  const auto judge = [&](const std::string& members, const std::string& result) {
    return JudgePython(
        task, kSmallNetworkHead + members + "    def forward(self, x):\n        return " + result + "\n",
        /*verify_only=*/false);
  };
  const v1::Measurement renamed = judge("        self.dense = nn.Linear(64, 32)\n", "F.relu(self.dense(x))");
  CHECK(renamed.grade().verdict() == v1::VERDICT_CORRECT);
  REQUIRE(renamed.grade().has_timing());
  CHECK_FALSE(renamed.grade().timing().parameters_fixed());

  const v1::Measurement kept = judge(
      "        l = nn.Linear(64, 32)\n        self.w = l.weight.detach().t().contiguous()\n"
      "        self.b = l.bias.detach()\n",
      "F.relu(x @ self.w + self.b)");
  CHECK(kept.grade().verdict() == v1::VERDICT_CORRECT);
  REQUIRE(kept.grade().has_timing());
  CHECK(kept.grade().timing().parameters_fixed());

  const v1::Measurement folded =
      judge("        self.linear = nn.Linear(64, 32)\n        self.w = self.linear.weight.detach().clone()\n",
            "F.relu(F.linear(x, self.w, self.linear.bias))");
  CHECK(folded.grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK(folded.grade().verdict_reason().find("with other parameters") != std::string::npos);
}

TEST_CASE("a task may have a thousand parameters, which a candidate may call otherwise") {
  const auto judge = [](int num_parameters, const std::string& name) {
    const auto program = [&](const std::string& head, const std::string& member) {
      return absl::StrCat(head, "        self.", member, " = nn.ParameterList(torch.randn(4) for _ in range(",
                          num_parameters, "))\n    def forward(self, x):\n        for p in self.", member,
                          ": x = x + p\n        return x\n");
    };
    const TaskSource task = MakeTask(
        program("import torch\nfrom torch import nn\n"
                "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n",
                "shifts") +
        "def get_inputs():\n    return [torch.randn(16, 4)]\ndef get_init_inputs():\n    return []\n");
    return JudgePython(task, program(kSmallNetworkHead, name), /*verify_only=*/false);
  };
  for (const char* name : {"shifts", "moves"}) {
    const v1::Measurement right = judge(1000, name);
    INFO(right.grade().verdict_reason());
    CHECK(right.grade().verdict() == v1::VERDICT_CORRECT);
    REQUIRE(right.grade().has_timing());
    CHECK_FALSE(right.grade().timing().parameters_fixed());
  }
  const v1::Measurement over = judge(1025, "shifts");
  CHECK(over.grade().verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(over.grade().verdict_reason() == "the task has more than 1024 parameters");
}

TEST_CASE("threads that wait for each other often are verified in time, though they share a core at first") {
  const std::string layers =
      "        self.layers = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(32))\n"
      "    def forward(self, x):\n        for layer in self.layers: x = torch.sin(layer(x))\n"
      "        return x\n";
  const TaskSource task = MakeTask(
      "import torch\nfrom torch import nn\n"
      "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n" +
      layers +
      "def get_inputs():\n    return [torch.randn(16, 4)]\n"
      "def get_init_inputs():\n    return []\n");
  const v1::Measurement j = JudgePython(task, kSmallNetworkHead + layers);
  INFO(j.grade().verdict_reason());
  CHECK(j.grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a tensor that is returned twice is wrong") {
  const v1::Measurement j =
      JudgePython(TestTask("scaled_relu_square"),
                  "import torch\nclass ModelNew(torch.nn.Module):\n    kept = None\n"
                  "    def forward(self, x):\n        y = torch.relu(x * 2 + 1) ** 2\n"
                  "        if ModelNew.kept is None: ModelNew.kept = torch.empty_like(y)\n"
                  "        return ModelNew.kept.copy_(y)\n");
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK(j.grade().verdict_reason().find("changed by the next call") != std::string::npos);
}

}  // namespace
}  // namespace warpsmith
