// Python programs where libraries are withheld: what runs, what ends at a withheld page, and ways around.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/sealed_jail.h"

namespace warpsmith {
namespace {

// A program whose forward() ends with `x` doubled by its own code, after `statements`; `construction` runs in
// __init__.
std::string Program(const std::string& statements, const std::string& construction = "pass",
                    const std::string& head = "") {
  return absl::StrCat(
      "import ctypes, os, sys, threading, time\nimport torch\n", head,
      "\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
      "        ",
      construction, "\n    def forward(self, x, scale):\n        ", statements,
      "\n        return own_scale(x, scale)\n"
      "def own_scale(x, scale):\n    y = torch.empty_like(x)\n"
      "    source = (ctypes.c_float * x.numel()).from_address(x.data_ptr())\n"
      "    target = (ctypes.c_float * x.numel()).from_address(y.data_ptr())\n"
      "    for i in range(x.numel()): target[i] = scale * source[i]\n    return y\n");
}

bool IsDoubled(const SealedRun& run) {
  if (run.fault || run.output.size() != run.input.size()) return false;
  for (size_t i = 0; i < run.input.size(); ++i) {
    if (run.output[i] != 2 * run.input[i]) return false;
  }
  return true;
}

std::string Told(const SealedRun& run) {
  return run.fault ? absl::StrCat(v1::Verdict_Name(run.fault->verdict), ": ", run.fault->reason) : "no fault";
}

void CheckEndsAtWithheldPage(const std::string& statements) {
  const SealedRun run = RunPython(Program(statements));
  INFO(statements << ": " << Told(run));
  REQUIRE(run.fault);
  CHECK(run.fault->withheld);
  CHECK(run.fault->verdict == v1::VERDICT_RUNTIME_ERROR);
  CHECK(run.fault->reason == "used a library's code that is withheld here");
  CHECK(run.num_calls == 0);
}

TEST_CASE("own work with allocation and views runs where libraries are withheld") {
  const SealedRun run =
      RunPython(Program("z = torch.zeros(3, 5).t()[1:].reshape(-1) if False else x.view(-1)"));
  INFO(Told(run));
  CHECK(IsDoubled(run));
  CHECK(run.num_calls == 2);
}

TEST_CASE("a program is called on each input set of a batch") {
  const SealedRun run = RunPython(Program("pass"), {}, {.calls_of_run = 3});
  INFO(Told(run));
  CHECK(run.input.size() == 3 * 64 * 64);
  CHECK(IsDoubled(run));
}

TEST_CASE("arithmetic, copies and random numbers of Torch end at a withheld page") {
  for (const char* statement : {"torch.mm(x, x)",
                                "torch.addmm(x, x, x)",
                                "torch.bmm(x[None], x[None])",
                                "torch.einsum('ij,jk->ik', x, x)",
                                "torch.nn.functional.conv2d(x[None, None], x[None, None, :3, :3])",
                                "torch.softmax(x, 1)",
                                "torch.nn.functional.layer_norm(x, (64,))",
                                "torch.relu(x)",
                                "torch.nn.functional.gelu(x)",
                                "x + x",
                                "x + 1",
                                "x * x",
                                "x * 2",
                                "x.exp()",
                                "x.sum()",
                                "x.max()",
                                "x.cumsum(0)",
                                "x.sort()",
                                "torch.cat([x, x])",
                                "x[torch.tensor([1, 2])]",
                                "torch.randn(4)",
                                "x.clone()",
                                "torch.empty_like(x).copy_(x)",
                                "x.t().contiguous()",
                                "x.double()",
                                "x.add_(1)",
                                "x @ x",
                                "x > 0",
                                "torch.where(x, x, x)",
                                "x.clamp(0)",
                                "x.repeat(2, 1)",
                                "torch.stack([x, x])",
                                "x.sigmoid()",
                                "x.mean(1)",
                                "torch.arange(9)",
                                "x.t().reshape(-1)",
                                "x[0] = x[1]",
                                "x.masked_fill_(x.view(torch.bool)[:, :64], 1)",
                                "x.tril()",
                                "x.flip(0)"}) {
    CheckEndsAtWithheldPage(statement);
  }
}

TEST_CASE("numpy ends at a withheld page") {
  CheckEndsAtWithheldPage("import numpy; a = numpy.zeros((9, 9)) @ numpy.zeros((9, 9))");
  CheckEndsAtWithheldPage("x.numpy()");
}

TEST_CASE("the same programs run where nothing is withheld") {
  const SealedRun run = RunPython(Program("torch.relu(x) @ x"), {}, {.sealed = false, .withhold = false});
  INFO(Told(run));
  CHECK(IsDoubled(run));
  const SealedRun sealed = RunPython(Program("torch.relu(x) @ x"), {}, {.sealed = true, .withhold = false});
  INFO(Told(sealed));
  CHECK(IsDoubled(sealed));
}

TEST_CASE("constructors may use libraries, and their garbage does no harm") {
  const SealedRun run = RunPython(
      Program("self._modules.pop('first', None); self.second = None; self.third = "
              "torch.nn.Parameter(self.third.detach())",
              "self.first = torch.nn.Conv2d(3, 4, 3); self.second = torch.randn(9, 9) @ torch.randn(9, 9); "
              "self.third = torch.nn.Parameter(torch.randn(7)); self.loop = [torch.ones(3)]; "
              "self.loop.append(self.loop)"));
  INFO(Told(run));
  CHECK(IsDoubled(run));
}

TEST_CASE("the standard library can be imported in forward") {
  const SealedRun run = RunPython(Program(
      "import random, json, decimal, hashlib, array, math, struct, functools, itertools; random.random()"));
  INFO(Told(run));
  CHECK(IsDoubled(run));
}

TEST_CASE("errors that a program catches are no library work") {
  const SealedRun run =
      RunPython(Program("\n        try:\n            x.view(-7)\n        except RuntimeError as error:\n     "
                        "       str(error)"));
  INFO(Told(run));
  CHECK(IsDoubled(run));
}

TEST_CASE("several threads allocate and fill") {
  const SealedRun run = RunPython(Program("torch.zeros(2000, 2000).fill_(3); torch.ones(999, 999)"), {},
                                  {.sealed = true, .withhold = true, .num_threads = 3});
  INFO(Told(run));
  CHECK(IsDoubled(run));
}

// Functions of libc by number: what a program would try on withheld code.
const char* const kSystem = R"(
libc = ctypes.CDLL(None, use_errno=True)
for name in ('mmap', 'mremap'):
    getattr(libc, name).restype = ctypes.c_void_p
def failed(result):
    return ctypes.c_long(result or 0).value == -1
def symbol(library, name):
    return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
blas = os.path.join(os.path.dirname(torch.__file__), 'lib', 'libtorch_cpu.so')
)";

void CheckRunsWith(const std::string& statements, const std::string& construction = "pass") {
  const SealedRun run = RunPython(Program(statements, construction, kSystem));
  INFO(statements << " / " << construction << ": " << Told(run));
  CHECK(IsDoubled(run));
}

TEST_CASE("no protection brings withheld code back") {
  const std::string find = "self.at = symbol(blas, 'sgemm_') & ~4095";
  CheckRunsWith("assert failed(libc.mprotect(ctypes.c_void_p(self.at), 4096, 5))", find);
  CheckRunsWith("assert failed(libc.mprotect(ctypes.c_void_p(self.at), 4096, 7))", find);
  CheckRunsWith("assert failed(libc.syscall(329, ctypes.c_void_p(self.at), 4096, 5, -1))", find);
  CheckRunsWith("assert failed(libc.mmap(ctypes.c_void_p(self.at), 4096, 5, 0x32, -1, 0))", find);
}

TEST_CASE("no memory can be made executable") {
  CheckRunsWith("assert failed(libc.mmap(None, 4096, 7, 0x22, -1, 0))");
  CheckRunsWith("assert failed(libc.mmap(None, 4096, 5, 0x21, -1, 0))");
  CheckRunsWith(
      "p = libc.mmap(None, 4096, 3, 0x22, -1, 0); assert failed(libc.mprotect(ctypes.c_void_p(p), 4096, 5))");
  CheckRunsWith("assert failed(libc.syscall(319, b'x', 0)), 'memfd_create'");
  CheckRunsWith("assert not os.path.exists('/dev/zero')");  // the device whose mappings are anonymous memory
}

TEST_CASE("a second copy of a library cannot be loaded, by any path, before or after") {
  const std::string attempt = R"(
def refused(load, *arguments):
    try:
        load(*arguments)
    except OSError:
        return True
    return False
def copy(path):
    data = open(path, 'rb').read(1 << 16)
    open('/tmp/libtorch_cpu.so', 'wb').write(data)
    return '/tmp/libtorch_cpu.so'
small = '/usr/lib/x86_64-linux-gnu/libBrokenLocale.so.1'
def opened_for_code(path):
    file = os.open(path, os.O_RDONLY)
    return not failed(libc.mmap(None, 4096, 5, 2, file, 0))
libc.dlmopen.restype = ctypes.c_void_p
)";
  const std::string check =
      "assert refused(ctypes.CDLL, copy(blas)); assert not opened_for_code(blas); assert not "
      "opened_for_code(small); "
      "assert refused(ctypes.CDLL, small); assert not libc.dlmopen(-1, blas.encode(), 2)";
  for (const auto& [statements, construction] :
       {std::pair(check, std::string("pass")), std::pair(std::string("pass"), check)}) {
    const SealedRun run = RunPython(Program(statements, construction, kSystem + attempt));
    INFO(Told(run));
    CHECK(IsDoubled(run));
  }
}

TEST_CASE("a library that is loaded already is no way back") {
  CheckEndsAtWithheldPage(
      "ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), 'lib', 'libtorch_cpu.so')).sgemm_()");
}

TEST_CASE("a mapping is not made longer over what was taken from it") {
  const std::string find = "self.at = symbol(blas, 'sgemm_') & ~4095";
  CheckRunsWith("pass", find + "; assert failed(libc.mremap(ctypes.c_void_p(self.at), 4096, 8192, 1))");
  CheckRunsWith(
      "assert libc.munmap(ctypes.c_void_p(self.at + 4096), 4096) == 0; "
      "assert failed(libc.mremap(ctypes.c_void_p(self.at), 4096, 8192, 0))",
      find);
}

TEST_CASE("a program that keeps its jail from withholding is found from outside") {
  for (const char* construction :
       {"import gc; [setattr(o, '__class__', o.__class__) for o in ()]; sys.modules['__main__']._call = "
        "lambda *a: 0",
        "import python_jail; python_jail.Hooks.withhold = lambda *a: 0",
        "f = sys._getframe(); n = [0]\n"
        "        while f and 'hooks' not in f.f_locals: f = f.f_back\n"
        "        libc.mprotect.restype; f.f_locals['request'].withhold = False"}) {
    const SealedRun run = RunPython(Program("torch.relu(x)", construction, kSystem));
    INFO(construction << ": " << Told(run));
    REQUIRE(run.fault);
    CHECK(run.fault->verdict == v1::VERDICT_HACK);
    CHECK(run.fault->hack_family == kWithheldCodeFamily);
    CHECK(run.num_calls == 0);
  }
}

TEST_CASE("a forged answer does not open the jail") {
  const SealedRun run =
      RunPython(Program("torch.relu(x)", R"(text = b'{"op":"ready","parameters_loaded":true}'
        for fd in range(3, 64):
            try: os.write(fd, len(text).to_bytes(4, 'little') + text)
            except OSError: pass
        time.sleep(1))"));
  INFO(Told(run));
  REQUIRE(run.fault);
  CHECK(run.fault->hack_family == kWithheldCodeFamily);
}

TEST_CASE("a thread that is at work in a library while it is withheld ends the program") {
  const SealedRun run = RunPython(Program("time.sleep(2)",
                                          "self.big = torch.ones(1500, 1500); "
                                          "threading.Thread(target=lambda: [self.big @ self.big for _ in "
                                          "range(1000)], daemon=True).start(); time.sleep(.3)"));
  INFO(Told(run));
  REQUIRE(run.fault);
  CHECK(run.fault->withheld);
}

TEST_CASE("callbacks of ctypes need new code and are refused") {
  const SealedRun run = RunPython(Program("ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)()"));
  INFO(Told(run));
  CHECK((!run.fault || !run.fault->withheld));
}

TEST_CASE("ending oneself is a runtime error") {
  const SealedRun run = RunPython(Program("os._exit(0)"));
  REQUIRE(run.fault);
  CHECK(run.fault->verdict == v1::VERDICT_RUNTIME_ERROR);
  CHECK_FALSE(run.fault->withheld);
}

}  // namespace
}  // namespace warpsmith
