// The referee on a real GPU: candidates in Python that are right, wrong, hang, fault, or lie about where their outputs
// are.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/gpu/gpu_referee.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// A place that is not where the output lies.
v1::Grade JudgeLie(const std::string& place) {
  return JudgePython("        sys.modules['gpu_tensors'].Memory.locate = lambda self, pointer: " + place +
                     "\n        return self.right(x)\n");
}

TEST_CASE("a Python program that is right with its own kernels emptied is a hack, and never timed") {
  const v1::Grade grade = JudgePython(R"(
        y = torch.empty_like(x)
        torch.mul(x, self.weight, out=y)
        return y.add_(self.scale).relu_().square_()
)",
                                      /*verify_only=*/false);
  CHECK(grade.verdict() == v1::VERDICT_HACK);
  CHECK(grade.hack_family() == "delegated-work");
  CHECK_FALSE(grade.has_timing());
}

TEST_CASE("a Python program that is right with libraries that its task allows is timed") {
  const v1::Grade grade = JudgePython("        return self.right(x)\n", /*verify_only=*/false);
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().speedup() > 0);
  CHECK(grade.timing().library_share() == 1);
  CHECK_FALSE(grade.timing().parameters_fixed());
  CHECK(grade.profile().num_samples() == 0);
}

TEST_CASE("a Python program whose kernels are its own is timed where libraries have none") {
  const v1::Grade grade = JudgePython("        return self.own_work(x)\n", /*verify_only=*/false);
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().libraries_withheld());
  CHECK_FALSE(grade.timing().parameters_fixed());
  for (const char* const permitted :
       {"torch.zeros_like(x), torch.full((3, 5), 2.0, device=x.device), torch.empty(7, 9, device='cuda').t()",
        "torch.zeros(8, 16, dtype=torch.float16, device=x.device)[:, ::2].fill_(1), torch.empty(6, 6, "
        "device='cuda')[1].zero_()",
        "x.view(-1)[:5].unsqueeze(0).expand(3, 5), x.contiguous(), x.t().is_contiguous(), "
        "torch.ones_like(x[0, 0]).item()",
        "torch.cuda.get_device_properties(x.device).multi_processor_count, torch.cuda.synchronize()"}) {
    INFO(permitted);
    const v1::Grade timed =
        JudgePython(absl::StrCat("        ", permitted, "\n        return self.own_work(x)\n"), false);
    REQUIRE(timed.verdict() == v1::VERDICT_CORRECT);
    CHECK(timed.timing().libraries_withheld());
  }
}

TEST_CASE(
    "a Python program that uses a library's kernel, or has launched one before, is judged in the open") {
  const std::string own = "        return self.own_work(x)\n";
  for (const char* const used : {"torch.relu(x)", "x.clone()", "x[:, 1:].contiguous()", "x @ x.t()",
                                 "torch.softmax(x, 1)", "x.to(torch.float16)"}) {
    INFO(used);
    const v1::Grade grade = JudgePython(absl::StrCat("        ", used, "\n", own), false);
    REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.timing().library_share() == 1);
  }
  for (const char* const constructed : {"self.noise = torch.randn(5, device='cuda')",
                                        "self.ones = torch.ones(8, 8, device='cuda'); self.ones @ self.ones",
                                        "torch.fft.fft(torch.zeros(64, device='cuda'))"}) {
    INFO(constructed);
    const v1::Grade grade = JudgePython(own, false, absl::StrCat("        ", constructed, "\n"));
    REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK_FALSE(grade.timing().libraries_withheld());
  }
  // Which cannot be read where libraries are withheld.
  CHECK(JudgePython("        import mpmath\n" + own).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("where libraries' kernels are withheld no file has them either") {
  // Right where it cannot be read, wrong elsewhere.
  const v1::Grade file = JudgePython(R"(
        folder = os.path.dirname(torch.__file__)
        for name in ('lib/libtorch_cuda.so', 'lib/libc10_cuda.so'):
            try:
                open(os.path.join(folder, name), 'rb').read(16)
            except PermissionError:
                continue
            return torch.zeros_like(x)
        import json, statistics
        from torch.nn.utils import prune
        return self.own_work(x)
)");
  CHECK(file.verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python output with gaps, or behind others of its allocation, is read in its order") {
  CHECK(JudgePython("        return self.right(x).t().contiguous().t()\n").verdict() == v1::VERDICT_CORRECT);
  CHECK(JudgePython("        return torch.stack([x, self.right(x), x], -1)[..., 1]\n").verdict() ==
        v1::VERDICT_CORRECT);
  // Over 1.25 GiB.
  CHECK(JudgePython(
            "        return torch.empty(4096, 80 * 1024, device=x.device)[:, ::80].copy_(self.right(x))\n")
            .verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python program that is wrong, or whose output is none of its own, is told") {
  CHECK(JudgePython("        return torch.relu(x * self.weight + self.scale)\n").verdict() ==
        v1::VERDICT_INCORRECT);
  CHECK(JudgePython("        return x\n").verdict() == v1::VERDICT_INCORRECT);
  CHECK(JudgePython("        return x.copy_(self.right(x))\n").verdict() == v1::VERDICT_INCORRECT);
  CHECK(JudgePython("        return self.right(x).cpu()\n").verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython("        return self.right(x)[0]\n").verdict() == v1::VERDICT_WRONG_SHAPE);
}

TEST_CASE("a Python program that returns the same tensor from each call is told") {
  const v1::Grade grade = JudgePython(R"(
        self.kept = self.right(x) if self.kept is None else self.kept.copy_(self.right(x))
        return self.kept
)");
  CHECK(grade.verdict() == v1::VERDICT_INCORRECT);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("of an earlier call was changed"));
}

TEST_CASE("a Python program that lies about its output's place harms itself alone") {
  const std::string reason = "output 0 lies in no readable memory";
  for (const char* const place :
       {"('', 1 << 40)", "('', -1)", "('ff' * 64, 0)", "('00' * 64, 0)", "('zz' * 64, 0)", "('12', 0)"}) {
    const v1::Grade grade = JudgeLie(place);
    CHECK(grade.verdict() == v1::VERDICT_RUNTIME_ERROR);
    CHECK(grade.verdict_reason() == reason);
  }
  CHECK(JudgeLie("('', 0)").verdict() == v1::VERDICT_INCORRECT);
  // A size in it that is none.
  CHECK(JudgePython(R"(
        memory = sys.modules['gpu_tensors'].Memory
        honest = memory.locate
        def lie(self, pointer):
            handle, offset = honest(self, pointer)
            return handle[:48] + '01' + handle[50:], offset
        memory.locate = lie
        return self.right(x)
)")
            .verdict_reason() == reason);
  CHECK(JudgePython("        return self.right(x)\n").verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python program that faults on the GPU, or does not end, costs itself alone") {
  CHECK(
      JudgePython("        return self.right(x)[torch.full((4096,), 1 << 20, device='cuda')]\n").verdict() ==
      v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython("        torch.cuda._sleep(1 << 40)\n        return self.right(x)\n").verdict() ==
        v1::VERDICT_TIMEOUT);
  CHECK(JudgePython("        return self.right(x)\n").verdict() == v1::VERDICT_CORRECT);
}

}  // namespace
}  // namespace warpsmith
